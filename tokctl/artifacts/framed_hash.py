"""The framed, domain-separated SHA-256: one payload can't stand for two kinds of artifact.

The hashed bytes are the protocol prefix, the domain's length (u32 big-endian) and ASCII name, the payload's length
(u64 big-endian) and the canonical JSON payload.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from tokctl.artifacts.canonical import canonical_json

PREFIX = b"TOKCTL-MANIFEST\0"


def framed_sha256(domain: str, payload: Any) -> str:
    """Lower-case hexadecimal digest of ``payload`` (a canonical-JSON value) under ``domain`` (ASCII, not empty)."""
    name = domain.encode("ascii")
    if not name:
        raise ValueError("a hash domain has a name")
    body = canonical_json(payload)
    digest = hashlib.sha256(PREFIX)
    digest.update(struct.pack(">I", len(name)) + name)
    digest.update(struct.pack(">Q", len(body)) + body)
    return digest.hexdigest()

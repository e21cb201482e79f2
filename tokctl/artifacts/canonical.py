"""Canonical JSON: one byte string for one value, so that a digest of it is a digest of the value.

Follows RFC 8785 where the profiles overlap: keys sorted by UTF-16 code units, no insignificant white space, UTF-8 with
only the escapes that JSON demands. Narrower than RFC 8785 in its values: null, booleans, strings, arrays, objects and
integers within ±(2**53 - 1). Anything else is written as a string by the caller, who says how.
"""

from __future__ import annotations

import json
from typing import Any

from tokctl.errors import ArtifactError

MAX_SAFE_INTEGER = 2**53 - 1


def canonical_json(value: Any) -> bytes:
    """The canonical bytes of ``value``.

    Raises ArtifactError for a float, an integer beyond ±(2**53 - 1), a key that is not a string, a lone surrogate or
    any other type, naming its place in the value.
    """
    pieces: list[str] = []
    _write(value, "$", pieces)
    return "".join(pieces).encode("utf-8")


def _write(value: Any, path: str, pieces: list[str]) -> None:
    if value is None:
        pieces.append("null")
    elif value is True:
        pieces.append("true")
    elif value is False:
        pieces.append("false")
    elif isinstance(value, str):
        pieces.append(_string(value, path))
    elif isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise _refusal(path, f"the integer {value} is beyond ±(2**53 - 1)", "write it as a decimal string")
        pieces.append(str(value))
    elif isinstance(value, (list, tuple)):
        pieces.append("[")
        for i, item in enumerate(value):
            if i:
                pieces.append(",")
            _write(item, f"{path}[{i}]", pieces)
        pieces.append("]")
    elif isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise _refusal(path, f"the key {key!r} is not a string", "object keys are strings")
        pieces.append("{")
        keyed = sorted((_utf16_key(key, path), key) for key in value)
        for i, (_, key) in enumerate(keyed):
            if i:
                pieces.append(",")
            pieces.append(_string(key, path))
            pieces.append(":")
            _write(value[key], f"{path}.{key}", pieces)
        pieces.append("}")
    else:
        kind = type(value).__name__
        hint = "write it as a string in its shortest round-trip form" if isinstance(value, float) else None
        raise _refusal(path, f"a {kind} has no canonical form", hint)


def _utf16_key(key: str, path: str) -> bytes:
    try:
        return key.encode("utf-16-be")
    except UnicodeEncodeError:
        raise _refusal(path, f"the key {key!r} holds a lone surrogate", None) from None


def _string(text: str, path: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refusal(path, "the string holds a lone surrogate", "store the bytes as hexadecimal") from None
    return json.dumps(text, ensure_ascii=False)


def _refusal(path: str, what: str, hint: str | None) -> ArtifactError:
    return ArtifactError(f"not canonical JSON at {path}: {what}", hint=hint, code="not-canonical")

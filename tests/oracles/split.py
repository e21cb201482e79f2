"""The split, slow and obvious: one document at a time, exact fractions, dicts and sets."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from fractions import Fraction


def position(key: str, seed: int) -> int:
    digest = hashlib.sha256(b"tokctl-split-v1\0" + seed.to_bytes(8, "big") + key.encode()).digest()
    return int.from_bytes(digest[:8], "big")


def role_by_fraction(at: int, validation: Fraction, test: Fraction) -> str:
    if at < int(test * 2**64):
        return "test"
    if at >= 2**64 - int(validation * 2**64):
        return "validation"
    return "train"


def join(keys: dict[str, str], clusters: dict[str, str]) -> dict[str, str]:
    """doc_id -> lowest key of everything its group is connected to; by repeating until nothing changes."""
    lowest = {key: key for key in keys.values()}
    changed = True
    while changed:
        changed = False
        for a in keys:
            for b in keys:
                if clusters.get(a) is not None and clusters.get(a) == clusters.get(b):
                    low = min(lowest[keys[a]], lowest[keys[b]])
                    for key in (keys[a], keys[b]):
                        if lowest[key] != low:
                            lowest[key] = low
                            changed = True
    return {doc_id: lowest[key] for doc_id, key in keys.items()}


def split_by_fraction(groups: dict[str, str], seed: int, validation: Fraction, test: Fraction) -> dict[str, str]:
    """doc_id -> role, from doc_id -> group key."""
    return {doc_id: role_by_fraction(position(key, seed), validation, test) for doc_id, key in groups.items()}


def split_by_quota(groups: dict[str, str], seed: int, strata: dict[str, str], quota) -> dict[str, str]:
    """doc_id -> role; ``quota(n_groups) -> (validation, test)`` numbers of groups in each stratum."""
    votes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for doc_id, key in groups.items():
        votes[key][strata[doc_id]] += 1
    home = {key: min(count, key=lambda name: (-count[name], name)) for key, count in votes.items()}
    role = {}
    for stratum in set(home.values()):
        members = sorted((key for key in home if home[key] == stratum), key=lambda key: position(key, seed))
        n_validation, n_test = quota(len(members))
        for i, key in enumerate(members):
            if i < n_test:
                role[key] = "test"
            elif i >= len(members) - n_validation:
                role[key] = "validation"
            else:
                role[key] = "train"
    return {doc_id: role[key] for doc_id, key in groups.items()}


def set_digest(documents: list[tuple[str, str]]) -> str:
    """Digest of (doc_id, sha256_text) pairs in any order."""
    return hashlib.sha256(
        b"".join(sorted(hashlib.sha256((text_hash + doc_id).encode()).digest() for doc_id, text_hash in documents))
    ).hexdigest()

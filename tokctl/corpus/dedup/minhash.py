"""MinHash signatures equal to datasketch's, whose permutations and constants are taken from datasketch itself.

Its 2.0 changed the default scheme, so a signature means nothing without its scheme, seed, number of permutations and
hash: ``SignatureScheme`` is all of them.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from tokctl.errors import ArtifactError, UsageError
from tokctl.kernels._boundary import bytes_view, writable_view

SCHEMES = ("affine32", "affine64", "legacy")
HASHES = ("xxh3", "sha1")

HashFunction = Callable[[bytes], int]


@dataclass(frozen=True, slots=True)
class SignatureScheme:
    """What fixes a signature.

    scheme: a permutation scheme of datasketch (``affine32`` and ``legacy`` use the low 32 bits of a hash).
    num_perm, seed: datasketch's.
    hash: ``sha1`` (datasketch's default: the first 4 or 8 bytes of SHA-1, little-endian) or ``xxh3`` (XXH3, 64 bits).
    """

    scheme: str = "affine32"
    num_perm: int = 128
    seed: int = 1
    hash: str = "xxh3"

    def __post_init__(self) -> None:
        _check_choice("MinHash scheme", self.scheme, SCHEMES)
        _check_choice("shingle hash", self.hash, HASHES)
        if not 1 <= self.num_perm <= 1 << 20:
            raise UsageError(f"{self.num_perm} permutations", hint="give 1 to 1048576", code="bad-signature")
        if not 0 <= self.seed < 1 << 32:
            raise UsageError(f"a seed of {self.seed}", hint="give 0 to 4294967295", code="bad-signature")

    def to_json(self) -> dict[str, object]:
        """For a manifest, with the version of the library that makes the permutations."""
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        return {"family": "minhash", **fields, "datasketch": metadata.version("datasketch")}


def minhash_signature(
    shingles: Iterable[bytes | str],
    num_perm: int = 128,
    seed: int = 1,
    scheme: str = "affine32",
    hash: str | HashFunction = "sha1",  # noqa: A002 - a promised name
) -> np.ndarray:
    """The MinHash signature of a set of shingles: equal to ``datasketch.MinHash(...).update_batch(shingles).hashvalues``.

    Text shingles are hashed as UTF-8. ``hash`` is ``sha1`` (datasketch's default function for the scheme), ``xxh3``
    (``xxhash.xxh3_64``, of which 32-bit schemes use the low half) or, as in datasketch, a function of bytes that
    returns an integer of the scheme's width. Returns ``uint32[num_perm]`` for affine32, else ``uint64[num_perm]``; no
    shingles give the greatest value everywhere. Raises UsageError for an unknown scheme or hash, or a hash value that
    is too wide.
    """
    settings = SignatureScheme(scheme, num_perm, seed, hash if isinstance(hash, str) else "sha1")
    raw = [shingle.encode("utf-8") if isinstance(shingle, str) else bytes(shingle) for shingle in shingles]
    if isinstance(hash, str):
        stops = np.cumsum([len(shingle) for shingle in raw], dtype=np.int64)
        starts = np.append(0, stops[:-1])[: len(raw)].astype(np.int64)
        hashes = hash_shingles(np.frombuffer(b"".join(raw), np.uint8), starts, stops, hash)
    else:
        hashes = _hash_by_function(raw, hash, 64 if scheme == "affine64" else 32)
    return signatures(hashes, np.array([0, hashes.size], np.int64), settings)[0]


def hash_shingles(data: np.ndarray, starts: np.ndarray, stops: np.ndarray, hash: str) -> np.ndarray:  # noqa: A002
    """``uint64[n]``: the hash of ``data[starts[i]:stops[i]]`` (uint8, int64[n]); its low half is the 32-bit hash."""
    if hash == "xxh3":
        from tokctl.kernels.shingles import hash_spans

        out = np.empty(starts.size, np.uint64)
        hash_spans(bytes_view(data), writable_view(starts), writable_view(stops), out)
        return out
    text, sha1 = data.data, hashlib.sha1
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    return np.frombuffer(b"".join([sha1(text[start:stop]).digest()[:8] for start, stop in spans]), "<u8")


def signatures(hashes: np.ndarray, offsets: np.ndarray, settings: SignatureScheme) -> np.ndarray:
    """Signatures of the hash sets ``hashes[offsets[i]:offsets[i + 1]]`` (uint64, int64[n + 1]); repeats don't matter.

    ``uint32[n, num_perm]`` for affine32, else ``uint64[n, num_perm]``.
    """
    permutations = _permutations(settings.scheme, settings.num_perm, settings.seed)
    return _run_kernel(settings.scheme, permutations, hashes, offsets)


def _run_kernel(scheme: str, permutations: _Permutations, hashes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    from tokctl.kernels import minhash as kernel

    out = np.empty((offsets.size - 1, permutations.a.size), permutations.a.dtype)
    arguments = (writable_view(hashes), writable_view(offsets), permutations.a, permutations.b)
    if scheme == "legacy":
        kernel.legacy(*arguments, *permutations.constants, out)
    else:
        run = kernel.affine32 if scheme == "affine32" else kernel.affine64
        run(*arguments, permutations.constants, out)
    return out


@dataclass(frozen=True)
class _Permutations:
    a: np.ndarray
    b: np.ndarray
    constants: Any  # affine: uint64[5]; legacy: (prime, its bits, greatest hash), uint64 each


@functools.cache
def _permutations(scheme: str, num_perm: int, seed: int) -> _Permutations:
    """The coefficients that the installed datasketch uses, tried out against it on one hash.

    Raises ArtifactError where the installed datasketch works in another way than this tokctl knows.
    """
    from datasketch import MinHash
    from datasketch import minhash as source

    probe = 0x9E3779B9
    peer = MinHash(num_perm, seed, scheme=scheme, hashfunc=lambda _: probe)
    a, b = (np.ascontiguousarray(values) for values in peer.permutations)
    peer.update(b"")
    try:
        if scheme == "legacy":
            prime = int(source._mersenne_prime)
            constants: Any = (np.uint64(prime), np.uint64(prime.bit_length()), np.uint64(source._max_hash))
        else:
            constants = np.array(source._FMIX_CONSTANTS[32 if scheme == "affine32" else 64], np.uint64)
        found = _Permutations(a, b, constants)
        one = _run_kernel(scheme, found, np.array([probe], np.uint64), np.array([0, 1], np.int64))[0]
        if np.array_equal(one, peer.hashvalues):
            return found
    except AttributeError:
        pass
    raise ArtifactError(
        f"datasketch {metadata.version('datasketch')} computes {scheme!r} signatures in a way this tokctl doesn't know",
        hint="install datasketch 2.0, or a newer tokctl",
        code="foreign-signatures",
    )


def _hash_by_function(shingles: list[bytes], function: HashFunction, bits: int) -> np.ndarray:
    values = [int(function(shingle)) for shingle in shingles]
    for value in values:
        if not 0 <= value < 1 << bits:
            raise UsageError(
                f"the hash value {value} does not fit the {bits} bits of the scheme",
                hint="use a narrower hash or scheme='affine64'",
                code="bad-signature",
            )
    return np.array(values, np.uint64)


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"unknown {what} {value!r}", hint=f"choose one of {', '.join(choices)}", code="unknown-choice")

"""Signatures equal datasketch's, and the definitions."""

from __future__ import annotations

import random

import datasketch
import numpy as np
import pytest
import xxhash
from oracles import minhash as oracle

import tokctl
from tokctl.corpus.dedup import minhash as room
from tokctl.corpus.dedup.minhash import SCHEMES, SignatureScheme, minhash_signature, signatures
from tokctl.errors import ArtifactError, UsageError
from tokctl.kernels import minhash as kernel

WORDS = ("the", "of", "and", "to", "in", "that", "for", "it", "was", "with", "be", "not", "are", "from", "which")


def _documents(n: int) -> list[list[bytes]]:
    rng = random.Random(0)
    documents: list[list[bytes]] = [[], [b""], [b"Hello"], [b"\x00", b"\xff" * 300]]
    while len(documents) < n:
        text = [rng.choice(WORDS) + str(rng.randrange(30)) for _ in range(rng.randint(5, 120))]
        documents.append([" ".join(text[i : i + 5]).encode() for i in range(len(text) - 4)])
    return documents


def test_published_signatures() -> None:
    assert minhash_signature([b"Hello"], 4, 1).tolist() == [3231258861, 1388533999, 831950533, 1845606703]
    legacy = minhash_signature(["Hello"], 4, 1, "legacy", "sha1")
    assert legacy.tolist() == [734825475, 960773806, 359816889, 342714745]
    assert tokctl.minhash_signature is minhash_signature


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("hash", ["sha1", "xxh3"])
def test_equal_to_datasketch_on_300_documents(scheme: str, hash: str) -> None:  # noqa: A002
    function = None
    if hash == "xxh3":
        mask = 2 ** oracle.BITS[scheme] - 1

        def function(data: bytes) -> int:
            return xxhash.xxh3_64_intdigest(data) & mask

    documents = _documents(300)
    peers = datasketch.MinHash.bulk(documents, num_perm=64, seed=7, scheme=scheme, hashfunc=function)
    for shingles, peer in zip(documents, peers, strict=True):
        found = minhash_signature(shingles, 64, 7, scheme, hash)
        assert found.dtype == peer.hashvalues.dtype
        assert np.array_equal(found, peer.hashvalues)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_to_the_definitions(scheme: str) -> None:
    a, b = datasketch.MinHash(5, 3, scheme=scheme).permutations
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    for shingles in _documents(12):
        assert minhash_signature(shingles, 5, 3, scheme).tolist() == oracle.signature(shingles, pairs, scheme)


def test_batches_repeats_and_order_change_nothing() -> None:
    rng = np.random.default_rng(0)
    for scheme in SCHEMES:
        settings = SignatureScheme(scheme, 37)
        hashes = rng.integers(0, 2**64, 200, dtype=np.uint64)
        offsets = np.array([0, 0, 1, 6, 200, 200], np.int64)
        together = signatures(hashes, offsets, settings)
        for i in range(5):
            own = hashes[offsets[i] : offsets[i + 1]]
            again = rng.permutation(np.concatenate([own, own]))
            assert np.array_equal(together[i], signatures(again, np.array([0, again.size]), settings)[0])


def test_a_hash_may_be_a_function() -> None:
    def crc(data: bytes) -> int:
        return xxhash.xxh32_intdigest(data)

    peer = datasketch.MinHash(16, hashfunc=crc)
    peer.update_batch([b"a", b"b"])
    assert np.array_equal(minhash_signature(["a", "b"], 16, hash=crc), peer.hashvalues)
    with pytest.raises(UsageError, match="32 bits"):
        minhash_signature(["a"], hash=lambda _: 1 << 32)
    with pytest.raises(UsageError, match="64 bits"):
        minhash_signature(["a"], scheme="affine64", hash=lambda _: -1)


@pytest.mark.parametrize(
    "arguments", [{"scheme": "affine16"}, {"hash": "md5"}, {"num_perm": 0}, {"seed": -1}, {"seed": 1 << 32}]
)
def test_wrong_settings_are_usage_errors(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        minhash_signature([b"x"], **arguments)  # type: ignore[arg-type]
    assert caught.value.hint


def test_another_datasketch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from datasketch import minhash as source

    monkeypatch.setitem(source._FMIX_CONSTANTS, 32, source._FMIX_CONSTANTS[32][::-1])
    monkeypatch.setattr(datasketch.MinHash, "update", lambda self, b: None)
    with pytest.raises(ArtifactError, match="affine32"):
        room._permutations.__wrapped__("affine32", 8, 1)
    monkeypatch.delattr(source, "_FMIX_CONSTANTS")
    with pytest.raises(ArtifactError, match="datasketch"):
        room._permutations.__wrapped__("affine64", 8, 1)


def test_one_signature() -> None:
    for scheme in SCHEMES:
        minhash_signature([b"x"], 8, scheme=scheme)
        minhash_signature([b"x"], 8, scheme=scheme, hash="xxh3")
    assert [len(run.signatures) for run in (kernel.affine32, kernel.affine64, kernel.legacy)] == [1, 1, 1]

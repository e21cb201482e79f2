from __future__ import annotations

import hashlib
import random

import numpy as np
import pyarrow as pa
from oracles import split as oracle

from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.corpus.release import (
    DocumentDigest,
    RoleRecord,
    RoleStatistics,
    release_hash,
    text_bytes,
    text_code_points,
)


def digest_of(pairs: list[tuple[str, str]], size: int) -> str:
    digest = DocumentDigest()
    for i in range(0, len(pairs), size):
        part = pairs[i : i + size]
        digest.add(pa.array([p[0] for p in part]), pa.array([p[1] for p in part]))
    assert digest.n_documents == len(pairs)
    return digest.hexdigest()


def test_digest_equals_the_oracle_in_any_order_and_batching():
    pairs = [(f"döc\t{i}", hashlib.sha256(bytes([i])).hexdigest()) for i in range(100)]
    shuffled = pairs[:]
    random.Random(1).shuffle(shuffled)
    assert digest_of(pairs, 100) == digest_of(shuffled, 7) == oracle.set_digest(pairs)
    assert digest_of(pairs[:99], 100) != digest_of(pairs, 100) != digest_of([*pairs, pairs[0]], 100)


def test_digest_of_nothing_is_sha256_of_nothing():
    assert DocumentDigest().hexdigest() == hashlib.sha256(b"").hexdigest()


def test_statistics_count_bytes_code_points_and_groups():
    table = pa.table({"doc_id": ["a", "b"], "text": ["né", ""], "sha256_text": ["0" * 64, "1" * 64]})
    statistics = RoleStatistics()
    for row in range(2):
        statistics.add(table.slice(row, 1), np.array([2**63 + 5], np.uint64))
    record = statistics.record()
    assert (record.documents, record.groups, record.bytes, record.code_points) == (2, 1, 3, 2)


def test_binary_text_counts_each_stray_byte_as_a_code_point():
    texts = pa.array(["é".encode(), b"a\xff\xfe", b"\xe2\x82", b""], pa.large_binary())
    assert text_bytes(texts).tolist() == [2, 3, 2, 0]
    assert text_code_points(texts).tolist() == [1, 3, 2, 0]
    assert text_code_points(pa.chunked_array([["é", "日本"], [""]])).tolist() == [1, 2, 0]


def test_release_hash_is_a_framed_hash_of_the_records():
    record = RoleRecord(documents=1, groups=1, bytes=2, code_points=1, digest="ab")
    payload = {"roles": {"train": {"documents": 1, "groups": 1, "bytes": 2, "code_points": 1, "digest": "ab"}}}
    assert release_hash({"train": record}) == framed_sha256("corpus-release-v1", payload)

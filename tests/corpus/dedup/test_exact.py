"""Exact duplicates: canonical equality, collisions, memory, order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tokctl.corpus.dedup import exact
from tokctl.corpus.dedup.canonical import Canonicalisation
from tokctl.corpus.dedup.document_rows import DocumentRows
from tokctl.corpus.dedup.exact import Duplicates, ExactSettings, find_exact
from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule
from tokctl.errors import UsageError

from .documents import cut, rows, table

FOLD = Canonicalisation(nfc=True, fold_case=True, collapse_space=True, drop_punctuation=True)


def _find(documents: DocumentRows, scratch: Path, settings: ExactSettings | None = None, **options: int) -> Duplicates:
    found, n_collisions = find_exact(documents, settings or ExactSettings(), scratch=scratch, **options)
    assert n_collisions == 0
    assert not list(scratch.iterdir())
    return found


def test_cat_dog_cat_and_an_empty_one(tmp_path: Path) -> None:
    documents = rows(["cat", "dog", "cat", ""])
    found = _find(documents, tmp_path)
    kept = Clusters(documents, found, SurvivorRule())
    assert kept.survives.tolist() == [True, True, False, True]
    dropped = Clusters(documents, found, SurvivorRule(), drop_empty=True)
    assert dropped.survives.tolist() == [True, True, False, False]
    assert dropped.statistics == {
        "documents": 4,
        "empty_dropped": 1,
        "clusters": 1,
        "duplicates": 1,
        "largest_cluster": 2,
    }


def test_only_the_declared_differences_are_ignored(tmp_path: Path) -> None:
    texts = ["Café au lait.", "cafe\u0301  AU lait", "cafe au lait", "Café au lait.", "CAFÉ au\nlait!"]
    assert _find(rows(texts), tmp_path).labels.tolist() == [0, 1, 2, 0, 4]
    assert _find(rows(texts), tmp_path, ExactSettings(FOLD)).labels.tolist() == [0, 0, 2, 0, 0]


def test_what_canonicalisation_empties_is_not_lumped_together(tmp_path: Path) -> None:
    found = _find(rows(["!!!", "???", "", "!!!", " "]), tmp_path, ExactSettings(FOLD))
    assert found.labels.tolist() == [0, 1, 2, 0, 4]
    assert found.is_empty.all()


def test_raw_bytes_are_compared_as_they_are(tmp_path: Path) -> None:
    documents = rows([b"a\xff", b"a\xfe", b"A\xff", "é".encode(), b"\xc3.\xa9"])
    assert _find(documents, tmp_path).labels.tolist() == [0, 1, 2, 3, 4]
    assert _find(documents, tmp_path, ExactSettings(FOLD)).labels.tolist() == [0, 1, 0, 3, 4]


@pytest.mark.parametrize("hash", ["xxh3-128", "sha256"])
@pytest.mark.parametrize("memory_limit", [1 << 30, 2000, 1])
@pytest.mark.parametrize("workers", [1, 3])
def test_equal_to_a_dict_within_any_memory(tmp_path: Path, hash: str, memory_limit: int, workers: int) -> None:  # noqa: A002
    rng = random.Random(0)
    texts = [f"text {rng.randrange(150)} " * rng.choice([1, 1, 40]) for _ in range(600)]
    first: dict[str, int] = {}
    expected = [first.setdefault(text, i) for i, text in enumerate(texts)]
    found = _find(
        cut(table(texts), [7, 90, 301]),
        tmp_path,
        ExactSettings(hash=hash),
        memory_limit=memory_limit,
        workers=workers,
    )
    assert found.labels.tolist() == expected
    assert found.lengths.tolist() == [len(text) for text in texts]


@pytest.mark.parametrize("memory_limit", [1 << 30, 1])
def test_a_collision_never_drops_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_limit: int) -> None:
    monkeypatch.setitem(exact.DIGESTS, "xxh3-128", lambda text: bytes([len(text) % 2]) * 16)
    texts = ["cat", "dog", "cat", "", "at", "dog", "bird", "cat"]
    found, n_collisions = find_exact(rows(texts), ExactSettings(), scratch=tmp_path, memory_limit=memory_limit)
    assert found.labels.tolist() == [0, 1, 0, 3, 4, 1, 6, 0]
    assert n_collisions > 0


def test_nothing_at_all(tmp_path: Path) -> None:
    documents = DocumentRows.from_batches([])
    found = _find(documents, tmp_path)
    clusters = Clusters(documents, found, SurvivorRule())
    assert clusters.survives.size == 0 and list(clusters.cluster_batches(all_documents=True)) == []


def test_unknown_choices_are_usage_errors() -> None:
    for arguments in ({"hash": "md5"}, {"empty": "maybe"}):
        with pytest.raises(UsageError) as caught:
            ExactSettings(**arguments)  # type: ignore[arg-type]
        assert caught.value.hint

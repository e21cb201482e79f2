"""Near duplicates against comparing everything with everything, and what other tools get wrong."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from oracles import near_duplicates as oracle

from tokctl.corpus.dedup import key_groups
from tokctl.corpus.dedup import near as room
from tokctl.corpus.dedup.canonical import NOTHING
from tokctl.corpus.dedup.document_rows import DocumentRows
from tokctl.corpus.dedup.limits import Limits, alarms
from tokctl.corpus.dedup.minhash import SignatureScheme
from tokctl.corpus.dedup.near import NearDuplicateSearch, NearSettings, NearWork
from tokctl.corpus.dedup.shingling import ShingleSets, Shingling
from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule
from tokctl.errors import UsageError

from .documents import cut, rows, table

CHINESE = (
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
    "人人有资格享有本宣言所载的一切权利和自由，不分种族、肤色、性别、语言、宗教、政治或其他见解、"
    "国籍或社会出身、财产、出生或其他身份等任何区别。"
)
UNRELATED = (
    "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。床前明月光，疑是地上霜。举头望明月，低头思故乡。"
    "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。千山鸟飞绝，万径人踪灭。孤舟蓑笠翁，独钓寒江雪。"
)
VOCABULARY = [f"{a}{b}" for a in "bcdfghklmn" for b in ("are", "ite", "ole", "uns", "ack", "ell")]


def _search(
    documents: DocumentRows, scratch: Path, settings: NearSettings | None = None, rule: str = "longest", **options: int
) -> tuple[Clusters, NearWork, int]:
    with NearDuplicateSearch(documents, settings or NearSettings(), scratch=scratch, **options) as search:
        clusters = Clusters(documents, search.run(), SurvivorRule.parse(rule))
        n_far = search.measure(clusters)
    assert not list(scratch.iterdir())
    return clusters, search.work, n_far


def _words(rng: random.Random, n: int) -> list[str]:
    return [rng.choice(VOCABULARY) for _ in range(n)]


def _family_texts(seed: int, n: int) -> list[str]:
    """Documents of which many are edited copies, plus short, empty and unspaced ones."""
    rng = random.Random(seed)
    documents = [_words(rng, 60)]
    for _ in range(n):
        words = list(rng.choice(documents)) if rng.random() < 0.75 else _words(rng, rng.randint(1, 90))
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            words[rng.randrange(len(words))] = rng.choice(VOCABULARY)
        documents.append(words)
    texts = [" ".join(words) for words in documents]
    return [*texts, "", "a", "a", CHINESE, CHINESE.replace("语言", "方言"), UNRELATED]


def _oracle(texts: list[str], settings: NearSettings) -> tuple[list[set[str]], list[int]]:
    options = [name for name, value in settings.canonicalisation.to_json().items() if value is True]
    canonical = [oracle.canonical(text, options) for text in texts]
    sets = [
        oracle.shingles(text, None, settings.shingling.n_characters)
        if oracle.is_unspaced(text)
        else oracle.shingles(text, settings.shingling.n_words, None)
        for text in canonical
    ]
    pairs = oracle.similar_pairs(sets, settings.threshold)
    first: dict[str, int] = {}
    for i, text in enumerate(canonical):
        if not sets[i] and first.setdefault(text, i) != i:
            pairs.append((first[text], i))
    return sets, oracle.components(len(texts), pairs)


@pytest.mark.parametrize("scheme", ["affine32", "affine64", "legacy"])
@pytest.mark.parametrize("hash", ["xxh3", "sha1"])
def test_clusters_are_those_of_brute_force(tmp_path: Path, scheme: str, hash: str) -> None:  # noqa: A002
    settings = NearSettings(threshold=0.7, recall=0.9999, signature=SignatureScheme(scheme, 256, hash=hash))
    for seed in range(3):
        texts = _family_texts(seed, 120)
        sets, labels = _oracle(texts, settings)
        clusters, work, _ = _search(rows(texts), tmp_path, settings)
        assert clusters.labels.tolist() == labels
        assert work.too_short == sum(not s for s in sets)
        assert work.by_character == 3 and work.by_word == len(texts) - 3 - work.too_short
        for row in range(len(texts)):
            kept = int(clusters.kept[row])
            assert kept == row or not sets[row] or oracle.jaccard(sets[row], sets[kept]) >= settings.threshold
        members = clusters.members.tolist()
        similarity = pa.Table.from_batches(clusters.cluster_batches()).column("similarity").to_pylist()
        expected = [oracle.jaccard(sets[row], sets[int(clusters.kept[row])]) for row in members]
        assert similarity == expected


def test_any_order_cut_memory_and_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _family_texts(5, 150)
    settings = NearSettings(max_failures=3)  # so small that the order of comparisons matters
    ids = [f"{i:04}" for i in range(len(texts))]
    results, works = [], []
    monkeypatch.setattr(key_groups, "_LEAST_MEMORY", 500)
    for seed in range(5):
        order = list(range(len(texts)))
        if seed:
            random.Random(seed).shuffle(order)
        shuffled = table([texts[i] for i in order], ids=[ids[i] for i in order])
        clusters, work, n_far = _search(
            cut(shuffled, [seed, 7 * seed, 40]),
            tmp_path,
            settings,
            workers=1 + seed % 3,
            memory_limit=1 if seed == 2 else 1 << 30,
        )
        batches = clusters.cluster_batches(all_documents=True)
        results.append(pa.Table.from_batches(batches).sort_by("doc_id"))
        works.append((work.by_word, work.by_character, work.too_short, work.candidates, n_far, clusters.statistics))
    assert all(result == results[0] for result in results[1:])
    assert all(work == works[0] for work in works[1:])


def test_a_lightly_edited_chinese_copy_matches_and_another_text_does_not(tmp_path: Path) -> None:
    edited = CHINESE.replace("语言", "方言").replace("。他们", "；他们")
    clusters, work, _ = _search(rows([CHINESE, edited, UNRELATED]), tmp_path)
    assert clusters.labels.tolist() == [0, 0, 2]
    assert work.by_character == 3


def test_short_and_empty_documents_do_not_collapse(tmp_path: Path) -> None:
    clusters, work, _ = _search(rows(["a", "b", "", "!!!", "a", "one two three four"]), tmp_path)
    assert clusters.labels.tolist() == [0, 1, 2, 3, 0, 5]
    assert work.too_short == 6 and work.by_word == 0


def test_unrelated_texts_under_one_header_survive(tmp_path: Path) -> None:
    rng = random.Random(0)
    header = " ".join(_words(rng, 100))
    texts = [header + " " + " ".join(_words(rng, 60)) for _ in range(50)]
    clusters, work, _ = _search(rows(texts), tmp_path)
    assert work.candidates > 2  # the header does make them meet
    assert clusters.survives.all()
    loose, _, _ = _search(rows(texts), tmp_path, NearSettings(threshold=0.2))
    found = alarms(
        Limits(max_cluster_size=10, max_source_removal=0.5),
        loose.statistics["largest_cluster"],
        loose.removed_by_source(),
    )
    assert [alarm.code for alarm in found] == ["large-cluster", "source-removed"]


def test_pairs_near_the_threshold_are_found_as_promised(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = []
    for pair in range(300):  # 100 ids each, 3 changed: 10 of 192 word pairs differ, a similarity of 0.885 and more
        ids = [f"p{pair}i{i}" for i in range(100)]
        texts.append(" ".join(ids))
        for i in rng.sample(range(100), 3):
            ids[i] = f"p{pair}new{i}"
        texts.append(" ".join(ids))
    settings = NearSettings(threshold=0.885, shingling=Shingling(n_words=2))
    clusters, _, _ = _search(rows(texts), tmp_path, settings)
    _, labels = _oracle(texts, settings)
    n_true = sum(labels[i] != i for i in range(600))
    n_found = sum(int(clusters.labels[i]) != i for i in range(600))
    assert n_true == 300 and n_found >= 0.99 * n_true


def test_an_estimate_that_passes_does_not_drop_a_pair_that_fails(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(200)]
    other = [*words[:176], *(f"v{i}" for i in range(24))]
    settings = NearSettings(threshold=0.8, recall=0.9999, shingling=Shingling(n_words=1))
    exact = 176 / 224
    assert exact < 0.8
    texts = [" ".join(words), " ".join(other)]
    passed = 0
    for seed in range(12):
        seeded = NearSettings(
            settings.threshold, settings.recall, SignatureScheme(num_perm=64, seed=seed), settings.shingling
        )
        clusters, work, _ = _search(rows(texts), tmp_path, seeded)
        sets = [[word.encode() for word in text.split()] for text in texts]
        left, right = (room.signatures(*_hashed(s), seeded.signature)[0] for s in sets)
        passed += bool((left == right).mean() >= 0.8 and work.candidates == 2)
        assert clusters.survives.all()
    assert passed > 0


def _hashed(shingles: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    import xxhash

    return np.array([xxhash.xxh3_64_intdigest(s) for s in shingles], np.uint64), np.array([0, len(shingles)])


def test_a_chain_keeps_what_is_not_similar_to_the_survivor(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(100)]
    links = [words, [*words[9:], *(f"x{i}" for i in range(9))], [*words[18:], *(f"x{i}" for i in range(18))]]
    texts = [" ".join(link) for link in links]
    unit = Shingling(n_words=1)
    clusters, _, n_far = _search(rows(texts), tmp_path, NearSettings(shingling=unit), "lowest-id")
    assert clusters.labels.tolist() == [0, 0, 0] and n_far == 1
    assert clusters.kept.tolist() == [0, 0, 2]
    found = pa.Table.from_batches(clusters.cluster_batches())
    assert found.column("similarity").to_pylist() == [1.0, 91 / 109, 1.0]
    assert found.column("cluster_size").to_pylist() == [3, 3, 3]
    clusters, _, n_far = _search(rows(texts), tmp_path, NearSettings(shingling=unit, keep="one"), "lowest-id")
    assert clusters.kept.tolist() == [0, 0, 0] and n_far == 1
    similarity = pa.Table.from_batches(clusters.cluster_batches()).column("similarity").to_pylist()
    assert similarity == [1.0, 91 / 109, 82 / 118]


def test_identical_documents_are_collapsed_before_anything_is_compared(tmp_path: Path) -> None:
    rng = random.Random(0)
    one, two = " ".join(_words(rng, 60)), " ".join(_words(rng, 60))
    near = one.rsplit(" ", 1)[0]
    texts = [one] * 2000 + [near] + [two] * 2000
    clusters, work, _ = _search(rows(texts), tmp_path)
    assert clusters.labels.tolist() == [0] * 2001 + [2001] * 2000
    assert work.compared_pairs == 1 and work.set_collisions == 0


def test_equal_set_digests_of_different_sets_drop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _family_texts(9, 60)
    expected, _, _ = _search(rows(texts), tmp_path)
    original = room.shingle_sets

    def weak(*arguments: object) -> ShingleSets:
        sets = original(*arguments)  # type: ignore[arg-type]
        return sets._replace(digests=sets.digests % np.uint64(3))

    monkeypatch.setattr(room, "shingle_sets", weak)
    clusters, work, _ = _search(rows(texts), tmp_path)
    assert clusters.labels.tolist() == expected.labels.tolist()
    assert work.set_collisions > 0


def test_too_many_failures_are_counted(tmp_path: Path) -> None:
    rng = random.Random(1)
    header = " ".join(_words(rng, 200))
    texts = [header + " " + " ".join(_words(rng, 60)) for _ in range(40)]
    _, work, _ = _search(rows(texts), tmp_path, NearSettings(max_failures=1))
    assert work.skipped_pairs > 0
    _, work, _ = _search(rows(texts), tmp_path)
    assert work.skipped_pairs == 0


def test_nothing_at_all(tmp_path: Path) -> None:
    clusters, work, n_far = _search(DocumentRows.from_batches([]), tmp_path)
    assert clusters.survives.size == 0 and n_far == 0 and work == NearWork()


def test_settings_are_checked_and_declared() -> None:
    for arguments in (
        {"canonicalisation": NOTHING},
        {"max_failures": 0},
        {"empty": "?"},
        {"keep": "?"},
        {"threshold": 0.01},
        {"threshold": float("nan")},
    ):
        with pytest.raises(UsageError) as caught:
            NearSettings(**arguments)  # type: ignore[arg-type]
        assert caught.value.hint
    for bad in ({"unit": "line"}, {"n_words": 0}, {"n_characters": 10**6}):
        with pytest.raises(UsageError):
            Shingling(**bad)  # type: ignore[arg-type]
    declared = NearSettings().to_json()
    assert (declared["bands"], declared["rows"], declared["recall_at_threshold"]) == (21, 6, "0.998312")
    assert declared["signature"]["scheme"] == "affine32"  # type: ignore[index]
    from tokctl.artifacts.canonical import canonical_json

    canonical_json(declared)


def test_one_signature(tmp_path: Path) -> None:
    from tokctl.kernels import jaccard, shingles
    from tokctl.kernels.minhash import band_keys

    _search(rows(_family_texts(0, 30)), tmp_path)
    _search(DocumentRows.from_batches([]), tmp_path)
    kernels = (shingles.shingle_spans, shingles.hash_spans, shingles.distinct, band_keys)
    for run in (*kernels, jaccard.unite_buckets, jaccard.similarities, jaccard.find_all):
        assert len(run.signatures) == 1, run


def test_what_a_template_made_is_similar_to_the_template_alone(tmp_path: Path) -> None:
    """40 variants, 0.88 from the template and 0.785 from one another, in buckets longer than the limit on failures."""
    template = [f"t{i}" for i in range(150)]
    variants = [" ".join([*template, *(f"v{v}n{i}" for i in range(20))]) for v in range(40)]
    texts = [*variants[:20], *[" ".join(template)] * 30, *variants[20:]]
    settings = NearSettings(recall=0.9999, shingling=Shingling(n_words=1), max_failures=5)
    ids = [f"{'b' if 20 <= i < 50 else 'c'}{i:02}" for i in range(70)]
    clusters, _, n_far = _search(rows(texts, ids=ids), tmp_path, settings, "lowest-id")
    assert not clusters.labels.any() and n_far == 0
    assert np.flatnonzero(clusters.survives).tolist() == [20]
    # The longest text is a variant: the template goes, its other variants stay, as nothing similar to them is kept.
    clusters, _, n_far = _search(rows(texts, ids=ids), tmp_path, settings, "longest")
    assert not clusters.labels.any() and n_far == 39
    assert np.flatnonzero(~clusters.survives).tolist() == list(range(20, 50))

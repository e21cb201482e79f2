"""Short, empty and Chinese documents through both deduplication stages: what is kept, and why the rest is not."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pipeline.cli_answers import check_rows, tokctl

CHINESE = (
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。人人有资格享有本宣言所载的一切权利和自由,"
    "不分种族、肤色、性别、语言、宗教、政治或其他见解、国籍或社会出身、财产、出生或其他身分等任何区别。"
)
EDITED = CHINESE.replace("一律平等", "完全平等")
UNRELATED = (
    "昨天晚上我们在河边的小饭馆吃了一顿丰盛的晚餐,老板亲自下厨做了红烧鲤鱼、清炒豆苗和一大碗热腾腾的酸辣汤,"
    "饭后大家沿着江堤慢慢散步,看着对岸的灯火一盏一盏亮起来,谁也不愿意先回家。"
)


def _rows(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts)))
    return path


def _kept(out: Path) -> list[str]:
    return pq.read_table(out / "part-00000.parquet").column("text").to_pylist()


@pytest.mark.parametrize("stage", ["exact", "minhash"])
@pytest.mark.parametrize("through_extract", [False, True])
def test_two_cats_a_dog_and_an_empty_document(stage: str, through_extract: bool, tmp_path: Path) -> None:
    """PITFALLS 38: too short for a shingle they are compared exactly, not collapsed into one; the empty one by its rule."""
    source, fields = _rows(tmp_path / "x.jsonl", ["cat", "dog", "cat", ""]), ["--id-field", "id"]
    if through_extract:
        assert tokctl("extract", source, *fields, "-o", tmp_path / "documents").code == 0
        source, fields = tmp_path / "documents", []
    reason = {"exact": "exact-duplicate", "minhash": "near-duplicate"}[stage]
    for rule, kept, rejects in (
        ("keep", ["cat", "dog", ""], {reason: 1}),
        ("drop", ["cat", "dog"], {reason: 1, "empty": 1}),
    ):
        out = tmp_path / rule
        answer = tokctl("dedup", stage, source, *fields, "-o", out, "--empty", rule, "--all-clusters")
        assert answer.code == 0 and _kept(out) == kept
        manifest = check_rows(out)
        assert manifest["counts"] == {"rows_in": 4, "rows_out": len(kept), "rows_rejected": 4 - len(kept)}
        assert manifest["facts"]["rejects"] == rejects
        clusters = {row["doc_id"]: row["kept_id"] for row in pq.read_table(out / "clusters.parquet").to_pylist()}
        assert clusters["x/x.jsonl#d2"] == clusters["x/x.jsonl#d0"] == "x/x.jsonl#d0"
        assert clusters["x/x.jsonl#d1"] == "x/x.jsonl#d1"


def test_one_letter_documents_stay_apart(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert tokctl("dedup", "minhash", _rows(tmp_path / "x.jsonl", ["a", "b", "", "c"]), "-o", out).code == 0
    assert sorted(_kept(out)) == ["", "a", "b", "c"]
    assert check_rows(out)["facts"]["too_short_compared_exactly"] == 4


def test_an_edited_chinese_copy_matches_and_an_unrelated_text_does_not(tmp_path: Path) -> None:
    """Chinese has no spaces: shingles are of characters there, so that one changed word doesn't hide the copy."""
    out = tmp_path / "out"
    source = _rows(tmp_path / "x.jsonl", [CHINESE, EDITED, UNRELATED])
    assert tokctl("dedup", "minhash", source, "--id-field", "id", "-o", out).code == 0
    assert _kept(out) == [CHINESE, UNRELATED]
    facts = check_rows(out)["facts"]
    assert (facts["rejects"], facts["by_character"], facts["by_word"]) == ({"near-duplicate": 1}, 3, 0)
    (reject,) = pq.read_table(out / "rejects.parquet").to_pylist()
    assert (reject["doc_id"], reject["stage"]) == ("x/x.jsonl#d1", "dedup minhash")
    rows = {row["doc_id"]: row for row in pq.read_table(out / "clusters.parquet").to_pylist()}
    assert set(rows) == {"x/x.jsonl#d0", "x/x.jsonl#d1"} and 0.8 <= rows["x/x.jsonl#d1"]["similarity"] < 1

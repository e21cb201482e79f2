from __future__ import annotations

import pyarrow as pa
from metrics.candidates import Chunks

from tokctl.metrics.compare import compare
from tokctl.metrics.gates import read_gates
from tokctl.report.markdown import markdown
from tokctl.report.table import by_slice, gate_table, number, overview

GATES = read_gates(
    """
    [[gate]]
    id = "short"
    metric = "tokens.total"
    op = "<"
    limit = 20
    [[gate]]
    id = "lossless"
    metric = "round_trip.documents"
    op = "=="
    limit = 1
    """
)


def result(languages=("de", "en"), gates=GATES, texts=("abcd", "éé")):
    table = pa.table(
        {"doc_id": [f"d{i}" for i in range(len(languages))], "text": (list(texts) * len(languages))[: len(languages)]}
    ).append_column("language", pa.array(languages))
    candidates = {"one": Chunks(1), "a|b": Chunks(2)}
    return compare(candidates, [table], baseline="one", gates=gates, slices=["language"]).to_json()


def test_tables_by_hand():
    table = overview(result())
    assert table.columns[:4] == ("candidate", "vocabulary", "tokens", "bytes/token")
    assert [row[:4] for row in table.rows] == [
        ("a|b", "4,096", "4", "2.0000"),
        ("one", "4,096", "8", "1.0000"),
    ]
    assert by_slice(result(), "bytes_per_token.micro").rows == (
        ("language=de", "1", "2.0000", "1.0000"),
        ("language=en", "1", "2.0000", "1.0000"),
    )
    assert by_slice(result(), "amplification.micro").columns == ("slice", "documents", "a|b")
    assert gate_table(result()).rows == (
        ("passed", "a|b", "short", "4", "< 20", ""),
        ("passed", "a|b", "lossless", "1.0000", "= 1", ""),
    )
    assert [number(v) for v in (None, 1234567, 0.5, 1234.56789)] == ["–", "1,234,567", "0.5000", "1,234.5679"]


def test_markdown_by_eye():
    text = markdown(result())
    assert text.startswith(
        "## Tokenizer comparison\n\n2 validation documents, baseline one; passed: all 2 gate checks\n"
    )
    assert "| a\\|b | 4,096 | 4 | 2.0000 |" in text
    assert "### Bytes per token by slice" in text
    assert "| language=de | 1 | 2.0000 | 1.0000 |" in text


def test_a_failure_comes_first():
    failing = read_gates('[[gate]]\nid = "tiny"\nmetric = "tokens.total"\nop = "<"\nlimit = 1')
    text = markdown(result(gates=failing))
    assert "**FAILED**: 1 of 1 gate checks did not pass" in text
    assert text.index("| failed | a\\|b | tiny | 4 |") < text.index("### Candidates")


def test_it_stays_under_the_limit_and_says_what_is_left_out():
    languages = [f"language-{i:03}" * 30 for i in range(150)]
    text = markdown(result(languages=languages, texts=("<b>x</b>", "y")))
    assert len(text.encode()) < 64_000
    assert "more rows are in the JSON." in text
    assert text.count("### ") == 4
    whole = markdown(result(languages=languages), max_bytes=10**7)
    assert "more rows" not in whole


def test_what_looks_like_markup_is_text():
    text = markdown(result(languages=("<script>", "*x*\n`y`")))
    assert "language=&lt;script\\>" in text
    assert "language=\\*x\\* \\`y\\`" in text


def test_a_relative_limit_names_what_it_is_relative_to():
    gate = '[[gate]]\nmetric = "tokens.total"\nop = "<="\nlimit = 0.8\nrelative_to = "one"'
    assert gate_table(result(gates=read_gates(gate))).rows[0][4] == "≤ 0.8 of one"


def test_no_gates_no_gate_table():
    text = markdown(result(gates=()))
    assert "no gates" in text
    assert "### Gates" not in text

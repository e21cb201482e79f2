from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from tokctl.cli.entry import run

SOURCE = 'def extract(html, main_content):\n    return html.replace("<p>", "").replace("</p>", "{}"), None, None\n'


@pytest.fixture
def page(tmp_path, monkeypatch):
    (tmp_path / "page.html").write_text("<p>one</p>")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TOKCTL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "page.html"


def extract(page, extractor, capsys) -> tuple[int, dict]:
    code = run(["extract", str(page), "-o", str(page.parent / "out"), "--extractor", extractor, "--json", "-q"])
    return code, json.loads(capsys.readouterr().out)


def test_an_edited_extractor_makes_the_output_stale(page, capsys):
    plugin = page.with_name("my_extractor.py")
    plugin.write_text(SOURCE.format("!"))
    code, document = extract(page, "my_extractor:extract", capsys)
    assert code == 0 and document["result"]["ran"]
    assert pq.read_table(page.parent / "out/part-00000.parquet")["text"].to_pylist() == ["one!"]
    assert not extract(page, "my_extractor:extract", capsys)[1]["result"]["ran"]
    plugin.write_text(SOURCE.format("?"))
    assert extract(page, "my_extractor:extract", capsys)[1]["result"]["state_before"] == "stale"


@pytest.mark.parametrize("name", ["resiliparsee", "no_such_module_here:extract"])
def test_an_unknown_extractor_is_a_usage_error(page, capsys, name):
    code, document = extract(page, name, capsys)
    assert code == 2 and document["error"]["code"] == "unknown-extractor"

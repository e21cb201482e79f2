from __future__ import annotations

from pathlib import Path

import pytest
from runtime.toy_stage import STAGE

from tokctl.errors import UsageError
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.pipeline import pipeline_status, read_pipeline, run_pipeline


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKCTL_CACHE_DIR", str(tmp_path / "cache"))


def load(name: str):
    return STAGE


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    path = tmp_path / "pipeline.toml"
    path.write_text(text)
    return path


CHAIN = """
[node.second]
stage = "toy"
input = ["${first}"]
suffix = "!"

[node.first]
stage = "toy"
input = ["a.txt"]
"""


def test_runs_in_dependency_order_and_then_does_nothing(tmp_path):
    pipeline = read_pipeline(write(tmp_path, CHAIN), load)
    assert [node.name for node in pipeline.nodes] == ["first", "second"]
    assert [row["state"] for row in pipeline_status(pipeline, load)] == ["absent", "absent"]
    outcomes = run_pipeline(pipeline, load, ExecutionOptions(workers=1))
    assert [o.ran for _, o in outcomes] == [True, True]
    assert (tmp_path / "pipeline-out/second/part-00000").read_text() == "ONE!\nTWO!"
    assert not any(o.ran for _, o in run_pipeline(pipeline, load, ExecutionOptions(workers=1)))
    assert [row["state"] for row in pipeline_status(pipeline, load)] == ["current", "current"]


def test_a_change_upstream_makes_what_reads_it_stale(tmp_path):
    pipeline = read_pipeline(write(tmp_path, CHAIN), load)
    run_pipeline(pipeline, load, ExecutionOptions(workers=1))
    (tmp_path / "a.txt").write_text("three\n")
    rows = pipeline_status(pipeline, load)
    assert [row["state"] for row in rows] == ["stale", "stale"]
    assert rows[1]["waits_for"] == ["first"]


def test_only(tmp_path):
    pipeline = read_pipeline(write(tmp_path, CHAIN), load)
    assert [n.name for n, _ in run_pipeline(pipeline, load, ExecutionOptions(workers=1), only=("first",))] == ["first"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[node.a]\nstage='toy'\ninput=['${b}']\n[node.b]\nstage='toy'\ninput=['${a}']", "wait for each other", None),
        ("[node.a]\nstage='toy'\ninput=['${first}']\n[node.firts]\nstage='toy'\ninput=['x']", "names no node", "firts"),
        ("[node.a]\nstage='toy'\nsufix='x'", "no input or parameter 'sufix'", "suffix"),
        ("[node.a]\ninput=['x']", "'stage' is missing", None),
        ("[nodes.a]\nstage='toy'", "found nodes", None),
        ("[pipeline]\noutptu='x'\n[node.a]\nstage='toy'", "unknown key", "output"),
        ("[node.a", "not TOML", None),
        ("[node.a]\nstage='toy'\nsize='0'", "size", None),
    ],
)
def test_mistakes_in_the_file(tmp_path, text, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        read_pipeline(write(tmp_path, text), load)
    if hint:
        assert hint in caught.value.hint


def test_a_dry_run_says_what_waits_and_writes_nothing(tmp_path):
    pipeline = read_pipeline(write(tmp_path, CHAIN), load)
    before = sorted(path.name for path in tmp_path.iterdir())
    first, second = (o for _, o in run_pipeline(pipeline, load, ExecutionOptions(dry_run=True)))
    assert (first.state_before, first.waits_for) == ("absent", ())
    assert (second.state_before, second.waits_for, second.fingerprint) == ("absent", ("first",), None)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == before
    run_pipeline(pipeline, load, ExecutionOptions(workers=1))
    outcomes = run_pipeline(pipeline, load, ExecutionOptions(dry_run=True))
    assert [o.state_before for _, o in outcomes] == ["current", "current"]

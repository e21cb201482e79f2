"""What has not changed is not made again; what has, is, with what depends on it and nothing else."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from pipeline.small_pipeline import NODES, differences, result_of, tokctl, tree, write_pipeline

from tokctl.runtime import fingerprint

# Each node with the nodes that read it, directly or not.
BELOW = {
    "documents": set(NODES),
    "split": set(NODES) - {"documents", "exact", "distinct"},
    "words": {"words", "tokenizers", "encoded", "report", "huggingface", "tiktoken"},
    "tokenizers": {"tokenizers", "encoded", "report", "huggingface", "tiktoken"},
    "encoded": {"encoded"},
    "report": {"report"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("skipping")
    write_pipeline(directory)
    tokctl("run", directory / "pipeline.toml")
    return directory


@pytest.fixture
def place(made, tmp_path) -> Path:
    """A copy of a finished pipeline elsewhere: nothing in it depends on where it is."""
    return Path(shutil.copytree(made, tmp_path / "moved"))


def run(place: Path, capsys, *options: object) -> set[str]:
    """The nodes that ``tokctl run`` made."""
    result = result_of(["run", place / "pipeline.toml", *options], capsys)
    ran = {node["node"] for node in result["nodes"] if node["ran"]}
    assert len(ran) == result["n_run"]
    return ran


def change(place: Path, old: str, new: str) -> None:
    path = place / "pipeline.toml"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_second_run_does_nothing_and_says_so(made):
    """In less than 2 seconds, at the best of three times, since the machine may be busy."""
    before = {path: path.stat().st_mtime_ns for path in sorted(made.rglob("*"))}
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        done = tokctl("run", made / "pipeline.toml")
        seconds.append(time.perf_counter() - started)
        assert f"nothing to do: all {len(NODES)} stages are up to date" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in sorted(made.rglob("*"))} == before
    assert min(seconds) < 2


def test_moved_directories_are_up_to_date(place, capsys):
    assert run(place, capsys) == set()
    shutil.move(place / "pipeline-out", place / "elsewhere")
    assert run(place, capsys, "-o", place / "elsewhere") == set()


def test_execution_options_change_nothing(place, capsys):
    assert run(place, capsys, "--workers", 3, "--memory-limit", "200MB") == set()


@pytest.mark.parametrize(
    ("node", "old", "new"),
    [
        ("split", "seed = 3", "seed = 4"),
        ("words", 'slice_by = "language"', 'slice_by = "language"\npattern = "cl100k"'),
        ("tokenizers", "vocab_size = [400, 900]", 'vocab_size = [400, 900]\nties = "descending"'),
        ("encoded", "eos = true\n", ""),
        ("report", 'baseline = "small"', 'baseline = "large"'),
    ],
)
def test_one_parameter_touches_what_depends_on_it(place, capsys, node, old, new):
    change(place, old, new)
    rows = {row["node"]: row for row in result_of(["status", place / "pipeline.toml"], capsys)["rows"]}
    assert {name for name, row in rows.items() if row["state"] != "current"} == BELOW[node]
    untouched = {name: tree(place / "pipeline-out" / name) for name in set(NODES) - BELOW[node]}
    assert run(place, capsys) == BELOW[node]
    for name, files in untouched.items():
        assert differences(tree(place / "pipeline-out" / name), files) == []
    assert run(place, capsys) == set()


def test_a_change_that_changes_no_result_goes_no_further(place, capsys):
    """Nodes are skipped by what is in their inputs, not by how it came about."""
    change(place, "id_field = ", "max_ratio = 199\nid_field = ")
    assert run(place, capsys) == {"documents"}


def test_one_byte_of_the_input(place, capsys):
    path = place / "corpus/udhr/en.jsonl"
    path.write_bytes(path.read_bytes().replace(b"human", b"humax", 1))
    ran = run(place, capsys)
    assert {"documents", "exact", "distinct", "split"} <= ran
    change_back = path.read_bytes().replace(b"humax", b"human", 1)
    path.write_bytes(change_back)
    assert "documents" in run(place, capsys)


def test_a_touched_input_is_hashed_and_found_the_same(place, capsys):
    (place / "corpus/udhr/en.jsonl").touch()
    assert run(place, capsys) == set()


def test_another_library_version(place, capsys, monkeypatch):
    """Only the stages that declare the library are made again, and what reads a result that changed."""
    installed = fingerprint.version
    monkeypatch.setattr(fingerprint, "version", lambda name: "99.0" if name == "datasketch" else installed(name))
    (row,) = (r for r in result_of(["status", place / "pipeline.toml"], capsys)["rows"] if r["node"] == "distinct")
    assert row["state"] == "stale"
    assert row["changes"] == [f"datasketch {installed('datasketch')} -> 99.0"]
    assert run(place, capsys) == {"distinct"}
    manifest = json.loads((place / "pipeline-out/distinct/manifest.json").read_text())
    assert manifest["libraries"]["datasketch"] == "99.0"


def test_a_lost_or_cut_file_is_made_again(place, capsys):
    before = tree(place / "pipeline-out")
    (place / "pipeline-out/words/words.parquet").unlink()
    assert run(place, capsys, "--only", "words") == {"words"}
    report = place / "pipeline-out/report/comparison.md"
    report.write_bytes(report.read_bytes()[:-1])
    assert run(place, capsys) == {"report"}
    assert differences(tree(place / "pipeline-out"), before) == []


def test_force(place, capsys):
    before = tree(place / "pipeline-out")
    assert run(place, capsys, "--force", "--only", "distinct") == {"documents", "exact", "distinct"}
    assert differences(tree(place / "pipeline-out"), before) == []


def test_dry_run_with_force(place, capsys):
    nodes = result_of(["run", place / "pipeline.toml", "--force", "--dry-run"], capsys)["nodes"]
    assert nodes[0]["changes"] == ["--force"]
    assert all("waits_for" in node for node in nodes[1:])


def test_dry_run_writes_nothing(place, capsys):
    out = place / "nowhere"
    before = {path: path.stat().st_mtime_ns for path in sorted(place.rglob("*"))}
    nodes = result_of(["run", place / "pipeline.toml", "-o", out, "--dry-run"], capsys)["nodes"]
    assert [node["node"] for node in nodes] == [row["node"] for row in status(place, capsys)]
    assert {node["state_before"] for node in nodes} == {"absent"}
    assert nodes[1]["waits_for"] == ["documents"]
    change(place, "seed = 3", "seed = 4")
    before[place / "pipeline.toml"] = (place / "pipeline.toml").stat().st_mtime_ns
    nodes = result_of(["run", place / "pipeline.toml", "--dry-run"], capsys)["nodes"]
    assert {node["node"] for node in nodes if node["state_before"] != "current"} == BELOW["split"]
    count = result_of(["count", place / "corpus/udhr", "-o", out, "--dry-run"], capsys)
    assert (count["ran"], count["state_before"]) == (False, "absent")
    assert {path: path.stat().st_mtime_ns for path in sorted(place.rglob("*"))} == before


def status(place: Path, capsys) -> list[dict]:
    rows: list[dict] = result_of(["status", place / "pipeline.toml"], capsys)["rows"]
    return rows


def test_status(place, capsys):
    assert {row["state"] for row in status(place, capsys)} == {"current"}
    assert [row["stage"] for row in status(place, capsys)][:3] == ["extract", "dedup exact", "dedup minhash"]
    shutil.rmtree(place / "pipeline-out/words")
    states = {row["node"]: (row["state"], row.get("waits_for")) for row in status(place, capsys)}
    assert states["words"] == ("absent", None)
    assert states["tokenizers"] == ("stale", ["words"])
    assert states["split"] == ("current", None)
    finished = result_of(["status", place / "pipeline-out"], capsys)["rows"]
    assert {row["node"]: row["state"] for row in finished} == dict.fromkeys(set(NODES) - {"words"}, "finished")

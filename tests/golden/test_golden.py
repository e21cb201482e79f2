from __future__ import annotations

import copy
import json
import sys

import pytest
from golden import golden_digests
from golden.golden_digests import changed, measure, read_record, reads_changed

from tokctl.stages import STAGES


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("golden") / "out")


def test_bytes_are_those_recorded(found):
    """A change of bytes has to come with another version of the stage, or outputs made before would count as current."""
    recorded = read_record()
    messages = []
    for node, differing in changed(recorded, found).items():
        if reads_changed(node, changed(recorded, found)):
            continue  # the node to look at is one it reads
        now = found[node]
        then = recorded.get(node, {})
        if then.get("version") == now["version"]:
            messages.append(
                f"{node} ({now['stage']}): {', '.join(differing)} changed under version {now['version']}, made with "
                f"{now['libraries']}, recorded with {then['libraries']}. If that is meant, raise the version in the Stage "
                f"declaration of {now['stage']!r}; then:"
            )
        else:
            messages.append(f"{node} ({now['stage']}) is of version {now['version']}, not recorded yet:")
    assert not messages, "\n".join([*messages, "python tests/golden/golden_digests.py --write"])


def test_recorded_versions_are_current(found):
    recorded = {entry["stage"]: entry["version"] for entry in read_record().values()}
    assert recorded == {entry["stage"]: entry["version"] for entry in found.values()}, (
        "python tests/golden/golden_digests.py --write"
    )


def test_every_stage_has_a_record():
    assert {entry["stage"] for entry in read_record().values()} == set(STAGES)


def test_a_change_is_seen():
    recorded = read_record()
    for kind, path in (("bytes", "words.parquet"), ("rows", "words.parquet")):
        other = copy.deepcopy(recorded)
        other["words"][kind][path] = "0" * 64
        assert changed(recorded, other) == {"words": [f"{kind} of {path}"]}
    other = copy.deepcopy(recorded)
    other["words"]["libraries"] = {"pyarrow": "1"}
    other["words"]["bytes"]["words.parquet"] = "0" * 64  # another library may write other bytes for the same rows
    assert changed(recorded, other) == {}
    other["words"]["facts"] = "0" * 64
    assert changed(recorded, other) == {"words": ["facts"]}


def test_writing_refuses_a_change_under_the_same_version(found, tmp_path, monkeypatch):
    """In a copy of the record that differs in one digest."""
    other = copy.deepcopy(found)
    other["words"]["facts"] = "0" * 64
    record = tmp_path / "digests.json"
    record.write_text(json.dumps(other))
    monkeypatch.setattr(golden_digests, "RECORD", record)
    monkeypatch.setattr(golden_digests, "measure", lambda out: found)
    monkeypatch.setattr(sys, "argv", ["golden_digests.py", "--write"])
    with pytest.raises(SystemExit, match="raise the version"):
        golden_digests.main()
    assert json.loads(record.read_text()) == other
    sys.argv.append("--same-version")
    golden_digests.main()
    assert json.loads(record.read_text()) == found

from __future__ import annotations

import copy
import subprocess
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


def test_writing_refuses_a_change_under_the_same_version(tmp_path):
    """In a copy of the record that differs in one digest."""
    script = (
        "import sys, json; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from golden import golden_digests as g\n"
        "record = g.read_record(); record['words']['facts'] = '0' * 64\n"
        "g.RECORD = Path(sys.argv[2]); g.RECORD.write_text(json.dumps(record))\n"
        "sys.argv[1:] = ['--write']; g.main()\n"
    )
    record = tmp_path / "digests.json"
    command = [sys.executable, "-c", script, str(golden_digests.HERE.parent), str(record)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "raise the version" in done.stderr
    assert '"0000000000' in record.read_text()

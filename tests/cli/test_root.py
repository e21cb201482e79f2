from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from tokctl import __version__
from tokctl.cli.commands import COMMANDS


def tokctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tokctl", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_help_is_quick_and_loads_no_numeric_library():
    code = (
        "import sys\nfrom tokctl.cli.entry import run\nassert run(['--help']) == 0\n"
        "heavy = {'numba', 'numpy', 'pyarrow', 'regex', 'datasketch', 'scipy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - started < 5  # the promise is 0.5 s warm; this bound only catches an accident
    for name in COMMANDS:
        assert f"\n  {name}" in done.stdout


def _paths(table, prefix=()):
    for name, (_, target) in table.items():
        if isinstance(target, dict):
            yield (*prefix, name)
            yield from _paths(target, (*prefix, name))
        else:
            yield (*prefix, name)


@pytest.mark.parametrize("path", list(_paths(COMMANDS)), ids=" ".join)
def test_every_command_has_help(path, capsys):
    from tokctl.cli.entry import run

    assert run([*path, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Usage: tokctl " + " ".join(path) in text


def test_version():
    assert tokctl("--version").stdout == f"tokctl {__version__}\n"


def test_unknown_command_is_a_usage_error_with_a_suggestion():
    done = tokctl("cuont")
    assert done.returncode == 2
    assert "did you mean 'count'" in done.stderr
    assert "Traceback" not in done.stderr


def test_usage_errors_are_json_when_asked():
    done = tokctl("count", "--nonsense", "--json")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["ok"] is False and document["command"] == "count" and document["error"]["kind"] == "usage"
    assert set(document["error"]) == {"code", "kind", "message", "hint", "where"}


@pytest.mark.parametrize("group", [(), ("fit",), ("cache",)], ids=" ".join)
def test_a_group_on_its_own_shows_what_can_follow(group):
    done = tokctl(*group)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: tokctl") and "Commands:" in done.stderr and "error:" not in done.stderr


def test_help_shows_defaults_forms_and_whole_examples(capsys):
    from tokctl.cli.entry import run

    assert run(["dedup", "minhash", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--seed N" in text and "[default: 1]" in text
    assert "Compare in Unicode's NFC. [default: yes]" in text
    assert text.index("--threshold") < text.index("--keep") < text.index("--errors")
    assert run(["extract", "--help"]) == 0
    assert "--id-field id --language-field lang\n" in capsys.readouterr().out

"""Every command of the README is run, in order, as a reader would type it; the Python block too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tokctl.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_every_shell_command_works(tmp_path):
    for name in ("examples", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    commands = [line for line in lines if not line.startswith("make ")]
    assert len(commands) > 20
    for command in commands:
        done = subprocess.run(
            ["sh", "-euc", command],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_python_block_works(tmp_path):
    (code,) = blocks("python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)", README))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_is_described(command):
    assert re.search(rf"`[^`]*\b{command}\b", README)

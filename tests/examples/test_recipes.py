"""Every recipe is run as a user would, on a part of the bundled corpus."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
# Enough text for the 8,000 tokens that the recipes ask for, and Burmese, which has a gate of its own.
LANGUAGES = (
    "ar",
    "cs",
    "de",
    "el",
    "en",
    "es",
    "fi",
    "fr",
    "hi",
    "ja",
    "ka",
    "ko",
    "my",
    "pl",
    "ru",
    "ta",
    "th",
    "tr",
    "zh",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A smaller corpus of the same four folders."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("pages", "code", "mirror"):
        shutil.copytree(EXAMPLES / "corpus" / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "udhr").mkdir()
    for language in LANGUAGES:
        shutil.copy(EXAMPLES / f"corpus/udhr/{language}.jsonl", folder / "udhr")
    return folder


def run(command: list[str], cwd: Path, corpus: Path) -> str:
    """Run a command with this Python's scripts first in the path; its output. Fails the test with what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"CORPUS": str(corpus), "PATH": path}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def vocabulary_size(tokenizer_json: Path) -> int:
    content = json.loads(tokenizer_json.read_text("utf-8"))
    return len(content["model"]["vocab"].keys() | {token["content"] for token in content["added_tokens"]})


@pytest.mark.slow
def test_shell_pipeline(tmp_path, corpus):
    command = ["sh", str(EXAMPLES / "01_shell_pipeline.sh"), "out"]
    run(command, tmp_path, corpus)
    out = tmp_path / "out"
    report = json.loads((out / "report/comparison.json").read_text())
    assert report["passed"] and report["n_documents"] > 50
    assert vocabulary_size(out / "huggingface/tokenizer.json") == 8000
    assert len(list(out.glob("tiktoken/*.tiktoken"))) == 1
    # Both copies of an article whose original is there, one of two otherwise; a page and a program.
    copies = (corpus / "mirror/declarations.jsonl").read_text("utf-8").splitlines()
    mirrored = {json.loads(line)["language"] for line in copies}
    expected = sum(2 if language in LANGUAGES else 1 for language in mirrored) + 2
    assert json.loads((out / "exact/manifest.json").read_text())["counts"]["rows_rejected"] == expected
    before = {p: p.stat().st_mtime_ns for p in out.rglob("manifest.json")}
    run(command, tmp_path, corpus)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("manifest.json")} == before


@pytest.mark.slow
def test_makefile(tmp_path, corpus):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "-f", str(EXAMPLES / "02_Makefile"), "OUT=out", "VOCAB=3000"]
    run(command, tmp_path, corpus)
    assert vocabulary_size(tmp_path / "out/huggingface-3000/tokenizer.json") == 3000
    assert "tokctl fit" not in run([*command, "-n"], tmp_path, corpus)


@pytest.mark.slow
def test_ci_workflow(tmp_path, corpus):
    """The workflow's own shell lines, but for the installation, over the demo pipeline."""
    workflow = (EXAMPLES / "03_ci_workflow.yml").read_text("utf-8")
    blocks = re.findall(r"^( +)run: \|\n((?:\1  .*\n)+)", workflow, re.MULTILINE)
    script = "".join(line for _, block in blocks for line in block.splitlines(True) if "pip install" not in line)
    assert script.count("tokctl ") == 3
    (tmp_path / "tokenizer").mkdir()
    pipeline = (ROOT / "configs/demo.toml").read_text("utf-8").replace("../examples/corpus", str(corpus))
    (tmp_path / "tokenizer/pipeline.toml").write_text(pipeline.replace("../examples/gates.toml", "gates.toml"))
    shutil.copy(EXAMPLES / "gates.toml", tmp_path / "tokenizer")
    run(["sh", "-ec", script], tmp_path, corpus)
    assert (tmp_path / "out/report/comparison.md").read_text("utf-8").startswith("## Tokenizer comparison")
    for path in re.findall(r"^ +(out/\w+)$", workflow, re.MULTILINE):
        assert (tmp_path / path).is_dir()


@pytest.mark.slow
def test_python_api(tmp_path, corpus):
    printed = run([sys.executable, str(EXAMPLES / "04_python_api.py"), "out"], tmp_path, corpus)
    assert "saved to out" in printed
    small, large = (float(x) for x in re.findall(r"(\d\.\d+) bytes per token", printed))
    assert 1 < small < large < 6

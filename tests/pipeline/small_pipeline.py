"""A pipeline with every stage over a small part of the bundled corpus, and how these tests run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[2] / "examples/corpus"
LANGUAGES = ("ar", "de", "en", "hi", "ja", "ru", "zh")
NODES = (
    *("documents", "exact", "distinct", "split", "words", "tokenizers"),
    *("encoded", "report", "huggingface", "tiktoken"),
)
_PIPELINE = """
[node.documents]
stage = "extract"
input = ["corpus/udhr", "corpus/pages", "corpus/code", "corpus/mirror"]
id_field = "id"
language_field = "language"
group_field = "group"
shard_bytes = "60kB"

[node.exact]
stage = "dedup exact"
input = ["${documents}"]
fold_case = true
collapse_space = true

[node.distinct]
stage = "dedup minhash"
input = ["${exact}"]
all_clusters = true

[node.split]
stage = "split"
input = ["${distinct}"]
validation = 0.2
test = 0.1
seed = 3

[node.words]
stage = "count"
input = ["${split}/train"]
special = ["<|endoftext|>"]
slice_by = "language"

[node.tokenizers]
stage = "fit bpe"
counts = ["${words}"]
vocab_size = [400, 900]
special = ["<|endoftext|>"]
eos = "<|endoftext|>"

[node.encoded]
stage = "encode"
input = ["${split}/test"]
tokenizer = ["${tokenizers}/900"]
eos = true
offsets = "raw_utf8_bytes"

[node.report]
stage = "compare"
validation = ["${split}/validation"]
candidate = ["small=${tokenizers}/400", "large=${tokenizers}/900"]
baseline = "small"

[node.huggingface]
stage = "export huggingface"
tokenizer = ["${tokenizers}/900"]

[node.tiktoken]
stage = "export tiktoken"
tokenizer = ["${tokenizers}/900"]
"""


def write_pipeline(directory: Path) -> Path:
    """The pipeline file and its corpus in ``directory``; nodes go to ``directory/pipeline-out``."""
    corpus = directory / "corpus"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("pages", "code", "mirror"):
        shutil.copytree(CORPUS / name, corpus / name, ignore=ignore)
    (corpus / "udhr").mkdir()
    for language in LANGUAGES:
        shutil.copy(CORPUS / f"udhr/{language}.jsonl", corpus / "udhr")
    path = directory / "pipeline.toml"
    path.write_text(_PIPELINE)
    return path


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below ``directory`` but ``run.json``, which may differ between runs."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "run.json"
    }


def differences(left: Mapping[str, bytes], right: Mapping[str, bytes]) -> list[str]:
    """The files that one tree has and the other lacks or has with other bytes: a short message where trees should be equal."""
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def command(*arguments: object) -> list[str]:
    """The command line of ``tokctl ARGUMENTS...`` in a process of its own."""
    return [sys.executable, "-m", "tokctl", *map(str, arguments)]


def tokctl(*arguments: object, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run tokctl in a process of its own; fails the test when it ends with another ``status``."""
    done = subprocess.run(
        command(*arguments), env=os.environ | environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def result_of(arguments: Sequence[object], capsys: Any, status: int = 0) -> dict[str, Any]:
    """The ``result`` (or the ``error``) of ``tokctl ARGUMENTS... --json``, run in this process."""
    from tokctl.cli.entry import run

    capsys.readouterr()
    exit_code = run([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert exit_code == status, f"{arguments} ended with {exit_code}\n{printed.out}\n{printed.err}"
    document = json.loads(printed.out)
    assert document["ok"] == (status == 0)
    value: dict[str, Any] = document["result" if document["ok"] else "error"]
    return value

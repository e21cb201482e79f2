"""``tokctl export``: a tokenizer in another library's format, re-encoded through that library where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokctl.errors import ArtifactError
from tokctl.runtime.parameters import Quantity, StageParameters, param
from tokctl.runtime.stage import Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import pattern_tables
from tokctl.stages.tokenizer_files import load_tokenizer, tokenizer_input

if TYPE_CHECKING:
    from tokctl.tokenizer.tokenizer import Tokenizer

Verify = Callable[["Tokenizer", Path, Sequence[str]], dict[str, Any]]


class ExportParameters(StageParameters):
    """Parameters that both exports take."""

    verify_strings: Quantity = param(
        2000, help="Generated strings that are encoded by both sides, beside every token of the vocabulary.", ge=0
    )
    seed: int = param(0, help="Seed of the generated strings.", ge=0, lt=1 << 53)


class HuggingFaceParameters(ExportParameters):
    """Parameters of ``export huggingface``."""

    vocab_and_merges: bool = param(False, help="Also write vocab.json and merges.txt (gpt2 pattern only).")


class TiktokenParameters(ExportParameters):
    """Parameters of ``export tiktoken``."""

    name: str = param(
        "tokenizer", help="Name of the encoding and of its files.", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
    )


def run_huggingface(stage_run: StageRun) -> None:
    """Write and verify tokenizer.json."""
    from tokctl.tokenizer.formats import huggingface

    def write(tokenizer: Tokenizer) -> list[Path]:
        return huggingface.export(
            tokenizer, stage_run.directory, vocab_and_merges=stage_run.parameters.vocab_and_merges
        )

    _run(stage_run, write, huggingface.FILE_NAME, huggingface.verify_huggingface)


def run_tiktoken(stage_run: StageRun) -> None:
    """Write and verify the ranks file."""
    from tokctl.tokenizer.formats import tiktoken

    name = stage_run.parameters.name
    _run(
        stage_run,
        lambda tokenizer: tiktoken.export(tokenizer, stage_run.directory, name),
        name + tiktoken.SUFFIX,
        tiktoken.verify_tiktoken,
    )


def _run(stage_run: StageRun, write: Callable[[Tokenizer], list[Path]], main: str, verify: Verify) -> None:
    from tokctl.tokenizer.formats.probe_texts import probe_texts

    (item,) = stage_run.inputs["tokenizer"]
    tokenizer = load_tokenizer(item)
    for path in write(tokenizer):
        stage_run.add_output(path.name)
    texts = probe_texts(tokenizer, stage_run.parameters.verify_strings, stage_run.parameters.seed)
    result = verify(tokenizer, stage_run.directory / main, texts)
    if result["status"] == "failed":
        divergence = result["first_divergence"]
        raise ArtifactError(
            f"{result['consumer']} {result['version']} doesn't agree with the exported file: {divergence}",
            hint="nothing was written; report this text",
            code="export-differs",
        )
    if result["status"] == "unverified":
        stage_run.warn(
            f"{result['consumer']} isn't installed: the export is unverified (pip install 'tokctl[interop]')"
        )
    stage_run.rows_in = stage_run.rows_out = tokenizer.vocab_size
    stage_run.facts |= {"semantic_hash": tokenizer.semantic_hash, "verification": result}


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    result = facts["verification"]
    if result["status"] == "unverified":
        return [f"unverified: {result['consumer']} isn't installed"]
    return [f"verified: {result['consumer']} {result['version']} gives the same ids on {result['n_strings']:,} strings"]


HUGGINGFACE = Stage(
    name="export huggingface",
    version=1,
    summary="Write tokenizer.json and tokenizer_config.json.",
    description=(
        "Write tokenizer.json and tokenizer_config.json for tokenizers and transformers. Where tokenizers is installed, "
        "the file is loaded and must encode every token and generated strings to the same ids; the manifest says with which "
        "version, else 'unverified'."
    ),
    parameters=HuggingFaceParameters,
    inputs=(tokenizer_input("The tokenizer."),),
    run=run_huggingface,
    headline=headline,
    libraries=("tokenizers",),
    data_tables=pattern_tables,
    examples=("tokctl export huggingface --tokenizer tokenizers/8000 -o exported",),
)

TIKTOKEN = Stage(
    name="export tiktoken",
    version=1,
    summary="Write a .tiktoken ranks file and its JSON.",
    description=(
        "Write NAME.tiktoken (ranks) and NAME.json (pattern and specials). Where tiktoken is installed, the file is loaded "
        "and must encode every token and generated strings to the same ids; the manifest says with which version, else "
        "'unverified'."
    ),
    parameters=TiktokenParameters,
    inputs=(tokenizer_input("The tokenizer."),),
    run=run_tiktoken,
    headline=headline,
    libraries=("tiktoken",),
    data_tables=pattern_tables,
    examples=("tokctl export tiktoken --tokenizer tokenizers/8000 -o exported --name mine",),
)

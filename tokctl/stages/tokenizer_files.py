"""Tokenizers as inputs of a stage: a tokctl directory, or a file of another library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokctl.artifacts.digests import DigestCache
from tokctl.errors import ArtifactError
from tokctl.runtime.inputs import resolve_argument
from tokctl.runtime.stage import Input, ResolvedInput

if TYPE_CHECKING:
    from tokctl.tokenizer.tokenizer import Tokenizer


TOKENIZER_STAGES = ("fit bpe", "export huggingface", "export tiktoken")
"""The stages whose output is a tokenizer."""


def tokenizer_input(help: str, *, name: str = "tokenizer", many: bool = False, labelled: bool = False) -> Input:  # noqa: A002
    """The ``--tokenizer PATH`` slot (or ``--candidate NAME=PATH...``)."""
    return Input(
        name,
        help,
        option=f"--{name}",
        many=many,
        labelled=labelled,
        is_set=labelled,
        accepts=TOKENIZER_STAGES,
        expand=expand_tokenizer,
        metavar="NAME=PATH" if labelled else "PATH",
    )


def expand_tokenizer(argument: str, parameters: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """The files that a tokenizer consists of: itself and the sibling that holds its pattern, or a directory's files."""
    path = Path(argument)
    if os.path.isdir(argument):  # noqa: PTH112 (false, not an error, for a name that is too long)
        files = [p for p in sorted(path.iterdir()) if p.is_file() and not p.name.startswith(".")]
        if files:
            return [(file.name, file) for file in files]
    if not os.path.isfile(argument):  # noqa: PTH113
        raise ArtifactError(
            f"there is no tokenizer at {path}",
            hint="a tokctl directory, tokenizer.json, or a .tiktoken file with its JSON beside it",
            code="no-tokenizer",
            file=argument,
        )
    files = [path]
    sibling = path.with_suffix(".json")
    if path.suffix == ".tiktoken" and sibling.is_file():
        files.append(sibling)
    return [(file.name, file) for file in files]


def tokenizer_path(item: ResolvedInput) -> Path:
    """Where :func:`tokctl.load` finds the tokenizer of a resolved input."""
    return item.root / item.under if item.is_stage_output else item.root


def open_tokenizer(argument: str) -> Tokenizer:
    """The tokenizer that a user named, resolved as the input of a stage is: a manifest beside it has to fit its files."""
    slot = tokenizer_input("the tokenizer: a tokctl directory, tokenizer.json or .tiktoken file")
    digests = DigestCache()
    item = resolve_argument(slot, argument, {}, digests)
    digests.save()
    return load_tokenizer(item)


def load_tokenizer(item: ResolvedInput, schedules: str = "follow") -> Tokenizer:
    """The tokenizer of a resolved input; an output of ``fit`` with several sizes has to be named with its size."""
    path = tokenizer_path(item)
    if item.manifest is not None and item.manifest.stage.startswith("fit ") and not item.under:
        sizes = list(item.manifest.facts["sizes"])
        if len(sizes) > 1:
            raise ArtifactError(
                f"{path} holds several tokenizers: {', '.join(sizes)}",
                hint=f"name one, such as {path / sizes[0]}",
                code="several-tokenizers",
                file=str(path),
            )
    return read_tokenizer(path, schedules)


def read_tokenizer(path: Path, schedules: str = "follow") -> Tokenizer:
    """A tokenizer's file or directory; an error about it always names the file and what to do."""
    from tokctl.tokenizer.formats import load

    try:
        return load(path, schedules=schedules)
    except ArtifactError as error:
        error.hint = error.hint or "the file is damaged or not of this kind: write it again, or name another tokenizer"
        if error.where.file is None:
            error.where = replace(error.where, file=str(path))
        raise

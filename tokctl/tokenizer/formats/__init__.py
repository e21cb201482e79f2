"""Reading and writing tokenizer files, natively and for other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokctl.errors import ArtifactError, UsageError

if TYPE_CHECKING:
    from tokctl.tokenizer.tokenizer import Tokenizer

EXPORTS: dict[str, str] = {
    "huggingface": "tokctl.tokenizer.formats.huggingface:export",
    "tiktoken": "tokctl.tokenizer.formats.tiktoken:export",
}
"""Export format -> the function that writes it."""

_NATIVE = "tokctl.json"
_HUGGINGFACE = "tokenizer.json"
_TEKKEN = "tekken.json"
_MERGES = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}


def load(
    path: str | Path,
    *,
    pattern: str | None = None,
    specials: Sequence[str] | Mapping[str, int] | None = None,
    merges: str | Path | None = None,
    schedules: str = "follow",
) -> Tokenizer:
    """Read a tokenizer: a directory of tokctl's or Hugging Face's, or one file.

    Files: ``tokctl.json``, ``tokenizer.json``, ``tekken.json``, ``NAME.tiktoken`` (``pattern`` and ``specials`` as
    arguments or in ``NAME.json``; also where it is called ``NAME.model``), a vocabulary with ``merges`` as argument or
    beside it (``vocab.json`` and ``merges.txt``, ``encoder.json`` and ``vocab.bpe``). ``specials`` are names, or names with
    ids. Raises ArtifactError for a path that
    is missing, ambiguous or of another kind, and for a broken or unsupported file: always with what was found.

    Where a table of merges gives other ids under another order of merging, ``schedules="follow"`` merges as the file's
    own library does and says so in ``Tokenizer.notices``; ``"refuse"`` raises ArtifactError ``schedules``.
    """
    from tokctl.tokenizer.formats.schedules import settle_schedule

    path = Path(path)
    tokenizer = _read(path, pattern=pattern, specials=specials, merges=merges)
    return settle_schedule(tokenizer, schedules, path)


def _read(
    path: Path,
    *,
    pattern: str | None,
    specials: Sequence[str] | Mapping[str, int] | None,
    merges: str | Path | None,
) -> Tokenizer:
    if not path.exists():
        raise ArtifactError(f"there is no {path}", code="missing-file", file=str(path))
    file = _pick(path) if path.is_dir() else path
    if merges is not None or file.name in _MERGES:
        from tokctl.tokenizer.formats.huggingface_load import load_vocab_and_merges

        beside = file.with_name(_MERGES.get(file.name, "merges.txt"))
        return load_vocab_and_merges(
            file, Path(merges) if merges is not None else beside, pattern=pattern, specials=specials
        )
    if file.suffix == ".tiktoken" or _is_ranks(file):
        from tokctl.tokenizer.formats import tiktoken

        return tiktoken.load(file, pattern=pattern, specials=specials)
    kind, value = _json_kind(file)
    if pattern is not None or specials is not None:
        raise UsageError(
            f"{file.name} holds its own pattern and special tokens",
            hint="leave pattern and specials out",
            code="pattern-given",
        )
    if kind == "native":
        from tokctl.tokenizer.formats import native

        return native.load(file, value)
    if kind == "tekken":
        from tokctl.tokenizer.formats import tekken

        return tekken.load(file, value)
    from tokctl.tokenizer.formats import huggingface_load

    return huggingface_load.load(file, value)


def _pick(directory: Path) -> Path:
    """The tokenizer file of a directory."""
    names = sorted(entry.name for entry in directory.iterdir())
    found = [name for name in (_NATIVE, _HUGGINGFACE, _TEKKEN) if name in names]
    found += [name for name in names if name.endswith(".tiktoken")]
    if _HUGGINGFACE in found and "tokenizer.tiktoken" in found and _is_beside_ranks(directory / _HUGGINGFACE):
        found.remove(_HUGGINGFACE)
    if not found:  # tokenizer.json says all that these two say
        found = [name for name, beside in _MERGES.items() if name in names and beside in names]
    if len(found) == 1:
        return directory / found[0]
    if found:
        raise ArtifactError(
            f"{directory} holds several tokenizers: {', '.join(found)}",
            hint="name one of the files",
            code="ambiguous-tokenizer",
            file=str(directory),
        )
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    nested = [name for name in names if (directory / name / _NATIVE).is_file()]
    raise ArtifactError(
        f"{directory} holds no tokenizer that tokctl reads; it holds {shown or 'nothing'}",
        hint=f"name one of its directories: {', '.join(nested[:8])}"
        if nested
        else "a tokenizer directory holds tokctl.json",
        code="no-tokenizer",
        file=str(directory),
    )


def _is_ranks(file: Path) -> bool:
    """Whether a ``.model`` file is one of ranks, as Llama 3's."""
    from tokctl.tokenizer.formats.tiktoken import is_ranks

    return file.suffix == ".model" and is_ranks(file)


def _is_beside_ranks(file: Path) -> bool:
    """Whether a JSON file is not a tokenizer itself, but has the pattern and the specials of a ``.tiktoken`` file."""
    from tokctl.tokenizer.formats.json_reader import read_json

    value = read_json(file)
    return isinstance(value, dict) and "pattern" in value and "model" not in value


def _json_kind(file: Path) -> tuple[str, Any]:
    """``native``, ``huggingface`` or ``tekken``, by what the file says, and what it holds."""
    from tokctl.tokenizer.formats.json_reader import kind_of, read_json
    from tokctl.tokenizer.formats.tekken import is_tekken

    others = {
        ".model": "a SentencePiece model",
        ".txt": "a text file, perhaps a WordPiece vocabulary",
        ".bpe": "merges without their vocabulary",
    }
    named = dict.fromkeys(_MERGES.values(), others[".bpe"])
    if file.suffix in others or file.name in named:
        what = named.get(file.name) or others[file.suffix]
        raise ArtifactError(
            f"{file.name} is {what}, which is not supported",
            hint="tokctl reads tokctl.json, tokenizer.json, tekken.json, .tiktoken, and vocab.json with merges.txt",
            code="unsupported",
            file=str(file),
        )
    value = read_json(file)
    if isinstance(value, dict):
        if "format" in value:
            return "native", value
        if "model" in value:
            return "huggingface", value
        if is_tekken(value):
            return "tekken", value
        found = f"an object with {', '.join(map(repr, sorted(value)[:8])) or 'no members'}"
    else:
        found = kind_of(value)
    hint = "for a vocabulary with merges pass merges=PATH" if isinstance(value, dict) else None
    ranks = file.with_suffix(".tiktoken")
    if isinstance(value, dict) and "pattern" in value and ranks.is_file():
        hint = f"it belongs to {ranks.name}: load that"
    raise ArtifactError(
        f"{file.name} is no tokenizer: it holds {found}",
        hint=hint,
        code="unsupported",
        file=str(file),
    )

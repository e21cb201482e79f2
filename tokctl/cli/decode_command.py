"""``tokctl decode``: rows of ids to the exact bytes they stand for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer

from tokctl.cli import envelope
from tokctl.errors import DataError, TokctlError


def command(
    tokenizer: Annotated[str, typer.Option("--tokenizer", help="The tokenizer that made the ids.", metavar="PATH")],
    file: Annotated[
        str,
        typer.Argument(help="Rows {ids}: JSON lines, or what encode -o wrote; - for stdin.", metavar="[FILE|DIR|-]"),
    ] = "-",
    text_errors: Annotated[
        Literal["bytes", "replace", "strict"],
        typer.Option("--errors", help="Bytes that aren't UTF-8: written as they are, replaced by U+FFFD, or an error."),
    ] = "bytes",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> int:
    """Decode rows of ids, as encode writes them, and write the raw bytes, one document after the other."""
    from tokctl.stages.tokenizer_files import open_tokenizer

    loaded = open_tokenizer(tokenizer)
    results: list[dict[str, Any]] = []
    for row, doc_id, ids in _rows(file):
        try:
            data = loaded.decode_bytes(ids)
            if text_errors != "bytes":
                data = loaded.decode(ids, errors=text_errors).encode()
        except TokctlError as error:
            raise DataError(
                f"{file}: row {row}: {error.message}",
                hint="choose --errors bytes or replace" if error.code == "invalid-utf8" else error.hint or _EXPECTED,
                code=error.code,
                file=file,
                row=row,
                offset=error.where.offset,
            ) from None
        if as_json:
            results.append({"doc_id": doc_id, **_shown(data)})
        else:
            sys.stdout.buffer.write(data)
    sys.stdout.flush()
    if as_json:
        envelope.emit("decode", {"rows": results})
    return 0


def _shown(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _rows(file: str) -> Iterator[tuple[int, Any, Any]]:
    """(line number from 0, doc_id, ids); blank lines are no rows."""
    if file == "-":
        yield from _parse(sys.stdin.buffer, "-")
        return
    if Path(file).is_dir() or file.endswith(".parquet"):
        from tokctl.stages.encoded_rows import encoded_rows

        yield from encoded_rows(file)
        return
    try:
        with Path(file).open("rb") as stream:
            yield from _parse(stream, file)
    except OSError as error:
        raise DataError(
            f"can't read {file}: {error.strerror}", hint="name a file of rows, or -", code="unreadable", file=file
        ) from None


_EXPECTED = 'expected rows such as {"doc_id": "a", "ids": [1, 2]}'


def _parse(stream: BinaryIO, file: str) -> Iterator[tuple[int, Any, list[int]]]:
    for row, line in enumerate(stream):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
            raise DataError(
                f"{file}: row {row} is not JSON: {why}",
                hint=_EXPECTED,
                code="invalid-json",
                file=file,
                row=row,
            ) from None
        ids = value.get("ids") if isinstance(value, dict) else value if isinstance(value, list) else None
        if not isinstance(ids, list) or not all(type(i) is int for i in ids):
            raise DataError(
                f"{file}: row {row} has no list of integers under 'ids'",
                hint=_EXPECTED,
                code="no-ids",
                file=file,
                row=row,
            )
        yield row, (value.get("doc_id") if isinstance(value, dict) else None), ids

"""``tokctl inspect``: what happens to one text."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from tokctl.cli import envelope


def command(
    text: Annotated[str, typer.Argument(help="The text; - reads it from stdin.", metavar="TEXT", show_default=False)],
    tokenizer: Annotated[str, typer.Option("--tokenizer", help="The tokenizer.", metavar="PATH")],
    allow_special: Annotated[
        list[str] | None,
        typer.Option("--allow-special", help="A special whose spelling becomes the token.", metavar="NAME"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> int:
    """Show what happens to one text: its words with offsets, each merge, the ids, their bytes and the special mask."""
    from tokctl.stages.tokenizer_files import open_tokenizer
    from tokctl.tokenizer.inspect import inspect

    data = sys.stdin.buffer.read() if text == "-" else os.fsencode(text)
    result = inspect(open_tokenizer(tokenizer), data, allowed_special=tuple(allow_special or ()))
    if as_json:
        envelope.emit("inspect", result)
    else:
        _show(result)
    return 0


def _show(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    spans = Table(title="words", title_justify="left")
    for column in ("bytes", "word", "merges (rank: token)"):
        spans.add_column(column, overflow="fold")
    for span in result["spans"]:
        merges = (
            "too long to trace"
            if span["merges"] is None
            else ", ".join(f"{m['rank']}: {_text(m)}" for m in span["merges"])
        )
        spans.add_row(_range(span["bytes"]), _text(span), merges)
    tokens = Table(title="tokens", title_justify="left")
    for column in ("id", "bytes", "token", "special"):
        tokens.add_column(column, overflow="fold")
    for token in result["tokens"]:
        tokens.add_row(str(token["id"]), _range(token["bytes"]), _text(token), "yes" if token["special"] else "")
    console.print(spans, markup=False)
    console.print(tokens, markup=False)
    console.print(f"{result['n_tokens']} tokens, {result['n_bytes']} bytes", markup=False)


def _range(bounds: list[int]) -> str:
    return f"{bounds[0]}-{bounds[1]}"


def _text(shown: dict[str, Any]) -> str:
    """Text in quotes; a part of a character as its bytes."""
    return f"<{shown['hex']}>" if shown["text"] is None else repr(shown["text"])

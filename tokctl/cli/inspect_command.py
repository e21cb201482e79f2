"""``tokctl inspect``: what happens to one text."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokctl.cli import envelope
from tokctl.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from tokctl.tokenizer.tokenizer import Tokenizer


def command(
    tokenizer: Annotated[str, typer.Option("--tokenizer", help="The tokenizer.", metavar="PATH")],
    text: Annotated[
        str | None, typer.Argument(help="The text; - reads it from stdin.", metavar="TEXT", show_default=False)
    ] = None,
    allow_special: Annotated[
        list[str] | None,
        typer.Option("--allow-special", help="A special whose spelling becomes the token.", metavar="NAME"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the tokenizer instead: merges, ids, specials, tokens out of reach.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> int:
    """Show what happens to one text: its words with offsets, each merge, the ids, their bytes and the special mask."""
    from tokctl.stages.tokenizer_files import open_tokenizer
    from tokctl.tokenizer.inspect import inspect

    if check:
        if text is not None or allow_special:
            raise UsageError("--check looks at no text", hint="leave TEXT and --allow-special out", code="usage")
        return _check(open_tokenizer(tokenizer), tokenizer, as_json)
    if text is None:
        raise UsageError("there is no TEXT", hint="write it after the options, or - for stdin", code="usage")

    data = sys.stdin.buffer.read() if text == "-" else os.fsencode(text)
    result = inspect(open_tokenizer(tokenizer), data, allowed_special=tuple(allow_special or ()))
    if as_json:
        envelope.emit("inspect", result)
    else:
        _show(result)
    return 0


def _check(tokenizer: Tokenizer, name: str, as_json: bool) -> int:
    from tokctl.tokenizer.soundness import check_tokenizer

    result = check_tokenizer(tokenizer)
    n_errors = sum(finding["severity"] == "error" for finding in result["findings"])
    failure = CheckFailed(f"{n_errors} errors in {name}", hint="the findings say what to do", code="unsound-tokenizer")
    if as_json and n_errors:
        envelope.emit_failed("inspect", result, failure)
    elif as_json:
        envelope.emit("inspect", result)
    else:
        envelope.say(f"{result['n_tokens']} tokens, {result['n_merges']} merges, {result['n_added']} added tokens")
        for finding in result["findings"]:
            envelope.say(f"{finding['severity']}: {finding['code']}: {finding['evidence']}")
            envelope.say(f"  fix: {finding['fix']}")
        for token in result["unreachable"]["tokens"]:
            envelope.say(
                f"  token {token['id']} <{token['hex']}>: {token['reason']}; its bytes give {token['encoded_as']}"
            )
        if not result["findings"]:
            envelope.say("every token encodes to itself, whatever the order of merging")
    if n_errors:
        envelope.print_error(failure)
    return failure.exit_code if n_errors else 0


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

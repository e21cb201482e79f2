"""The command tree, loaded one command at a time: ``--help`` of the root imports no stage."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tokctl.cli.commands import COMMANDS


def click_failures() -> type[Exception]:
    """The base class of the parser's complaints (typer carries its own copy of it)."""
    return next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class LazyGroup(TyperGroup):
    """A group whose commands come from a table; a placeholder with the summary stands in for one that isn't called."""

    table: dict[str, Any]
    path: str

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.table:
            return None
        summary, target = self.table[cmd_name]
        if isinstance(target, dict):
            return _group(f"{self.path} {cmd_name}".strip(), summary, target)
        return TyperCommand(cmd_name, callback=None, help=summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, LazyGroup) or name is None:
            return name, command, rest
        summary, target = self.table[name]
        return name, _load(f"{self.path} {name}".strip(), summary, target), rest


def root() -> TyperGroup:
    """The whole command tree."""
    app = typer.Typer(
        cls=_group_class("", COMMANDS),
        help="Prepare a corpus; fit, compare and ship a tokenizer. Nothing lost silently, the same bytes every time.",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def tokctl(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        pass

    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def _print_version(value: bool) -> None:
    if value:
        from tokctl import __version__

        typer.echo(f"tokctl {__version__}")
        raise typer.Exit


def _group_class(path: str, table: dict[str, Any]) -> type[LazyGroup]:
    return type("Group", (LazyGroup,), {"table": table, "path": path})


def _group(path: str, summary: str, table: dict[str, Any]) -> TyperGroup:
    app = typer.Typer(
        cls=_group_class(path, table),
        help=summary,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    command.name = path.rpartition(" ")[2]
    return command


def _load(path: str, summary: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    loaded = getattr(importlib.import_module(module), attribute)
    if callable(loaded):
        return build_command(path.rpartition(" ")[2], loaded, summary)
    from tokctl.cli.stage_command import spell_out_bare, stage_function

    command = build_command(path.rpartition(" ")[2], stage_function(loaded), loaded.description)
    parse = command.parse_args
    command.parse_args = lambda ctx, args: parse(ctx, spell_out_bare(loaded, args))
    return command


def build_command(name: str, function: Callable[..., Any], text: str) -> Any:
    """One parser command from a function whose signature carries typer options."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(
        name,
        help=function.__doc__ or text,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=False,
    )(function)
    return typer.main.get_command(app)

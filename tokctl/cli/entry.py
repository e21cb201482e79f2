"""From arguments to an exit code: every failure becomes one message, never a traceback for a user's mistake."""

from __future__ import annotations

import os
import sys

from tokctl.cli.envelope import emit_error, print_error
from tokctl.errors import TokctlError, UsageError


class Interrupted(TokctlError):
    """Ctrl-C."""

    kind = "interrupted"
    exit_code = 130

    def __init__(self) -> None:
        super().__init__("interrupted", hint="run the same command again: what is finished is kept")


class OutOfMemory(TokctlError):
    """An allocation failed."""

    exit_code = 70

    def __init__(self) -> None:
        super().__init__("out of memory", hint="run again with --memory-limit or fewer --workers", code="out-of-memory")


class SystemRefusal(TokctlError):
    """The operating system refused something that no command expected it to."""

    kind = "artifact"
    exit_code = 4

    def __init__(self, error: OSError) -> None:
        name = None if error.filename is None else os.fsdecode(error.filename)
        what = error.strerror or str(error)
        super().__init__(
            f"{name}: {what}" if name else what,
            hint="check the path, its rights and the free space, then run again",
            code="operating-system",
            file=name,
        )


class Defect(TokctlError):
    """An error that tokctl should have foreseen."""

    exit_code = 70

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"this is a defect of tokctl, nothing was finished: {type(error).__name__}: {error}",
            hint="run again with TOKCTL_TRACEBACK=1 and report the traceback",
            code="defect",
        )


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 ok, 1 a check or gate failed, 2 usage, 3 data, 4 artifact, 5 missing extra, 130 interrupted; 70 out of memory or a
    defect, whose traceback is shown when ``$TOKCTL_TRACEBACK`` is set.
    """
    try:
        return _invoke(arguments)
    except TokctlError as error:
        return _fail(arguments, error)
    except KeyboardInterrupt:
        return _fail(arguments, Interrupted())
    except BrokenPipeError:
        # the reader of our stdout has gone (``| head``): not an error, but nothing more can be written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _fail(arguments, OutOfMemory())
    except Exception as error:
        if os.environ.get("TOKCTL_TRACEBACK"):
            raise
        return _fail(arguments, SystemRefusal(error) if isinstance(error, OSError) else Defect(error))


def _fail(arguments: list[str], error: TokctlError) -> int:
    print_error(error)
    if "--json" in arguments:
        emit_error(_command_words(arguments), error)
    return error.exit_code


def _invoke(arguments: list[str]) -> int:
    from tokctl.cli.app import click_failures, root

    command = root()
    try:
        result = command.main(args=arguments, prog_name="tokctl", standalone_mode=False)
    except click_failures() as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group on its own: its help says what can follow
            print(error, file=sys.stderr)
            return UsageError.exit_code
        raise _usage(error) from None
    if result == Interrupted.exit_code:  # what the parser makes of Ctrl-C
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _usage(error: Exception) -> TokctlError:
    """One of the command-line parser's complaints in our form."""
    if type(error).__name__ == "Abort":
        raise KeyboardInterrupt from None
    message = (error.format_message() if hasattr(error, "format_message") else str(error)).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    where = getattr(context, "command_path", "tokctl") if context is not None else "tokctl"
    return UsageError(message.rstrip("."), hint=_suggestion(message) or f"{where} --help", code="usage")


def _suggestion(message: str) -> str | None:
    """The nearest command to one that doesn't exist."""
    if not message.startswith("No such command"):
        return None
    import difflib

    from tokctl.cli.commands import COMMANDS

    words = [*COMMANDS, *(sub for _, target in COMMANDS.values() if isinstance(target, dict) for sub in target)]
    close = difflib.get_close_matches(message.split("'")[1], words, n=1)
    return f"did you mean {close[0]!r}?" if close else None


def _command_words(arguments: list[str]) -> str:
    """The leading words of the command line (``dedup exact``), for the JSON document of a failure."""
    words: list[str] = []
    from tokctl.cli.commands import COMMANDS

    level: object = COMMANDS
    for argument in arguments:
        if argument.startswith("-") or not isinstance(level, dict) or argument not in level:
            break
        words.append(argument)
        level = level[argument][1]
    return " ".join(words)

"""From an INPUT argument to files in a total order: files, directories, globs, ``@list.txt``, ``NAME=PATH``.

An argument names a root. A file's ``source`` is the root's name (a file's own name without its suffixes, a directory's
name, the name before ``=``) unless the caller gives one; its ``uri`` is its path below the root with ``/``, for a file its
own name. Together they identify it; an absolute path never enters a record.

Directories are walked depth first in the byte order of the whole relative path. Names that begin with a dot are skipped
unless named. Links are followed; a link that leads back to a directory it lies in is an error. A file that is named twice
under one source is read once; two files that would share source and uri are an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokctl.errors import DataError, UsageError

STDIN = "-"
_COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
_FORMAT_SUFFIXES = (
    *(".jsonl", ".ndjson", ".json", ".parquet", ".warc", ".html", ".htm", ".xhtml"),
    *(".txt", ".text", ".md", ".markdown"),
)
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)
_MAX_LIST_DEPTH = 8


@dataclass(frozen=True, order=True)
class InputFile:
    """A raw file: what identifies it in records (``source``, ``uri``) and where it is (``path``)."""

    source: str
    uri: str
    path: str

    @property
    def name(self) -> str:
        """``source/uri``: unique in one run, and what a fingerprint may know about the file's place."""
        return f"{self.source}/{self.uri}"

    @classmethod
    def from_name(cls, name: str, path: str | os.PathLike[str], source: str | None = None) -> InputFile:
        """The inverse of ``name``. Standard input, which was spooled to ``path``, is called ``stdin``."""
        head, slash, uri = name.partition("/")
        return cls(head, uri, os.fspath(path)) if slash else cls(source or name, STDIN, os.fspath(path))


def expand_inputs(arguments: Sequence[str], source: str | None = None) -> list[InputFile]:
    """All files that ``arguments`` name: argument by argument, each argument's files in order.

    ``source`` replaces the names of all roots. Raises UsageError for an argument that names nothing and for two files that
    can't be told apart, DataError for a directory or list that can't be read and for a loop of links.
    """
    files = []
    for argument in arguments:
        files += expand_input(argument, source)
    return distinct(files)


def distinct(files: Iterable[InputFile]) -> list[InputFile]:
    """``files`` without repetitions. Raises UsageError when two different files have the same source and uri."""
    seen: dict[str, InputFile] = {}
    for file in files:
        first = seen.setdefault(file.name, file)
        if file.uri == STDIN and first is not file and first.path != file.path:
            raise UsageError(
                "standard input is named twice, and can be read once", hint="name - once", code="ambiguous-input"
            )
        if first.path != file.path and not _same_path(first.path, file.path):
            raise UsageError(
                f"{first.path} and {file.path} would both be {file.name!r} in the corpus",
                hint="name a directory that holds both, or tell them apart as NAME=PATH",
                code="ambiguous-input",
            )
    return list(seen.values())


def expand_input(argument: str, source: str | None = None, depth: int = 0) -> list[InputFile]:
    """The files of one argument, in order; errors as for ``expand_inputs``."""
    if not argument:
        raise UsageError(
            "an input is empty", hint="name files, directories, globs, @list.txt or -", code="missing-input"
        )
    if argument == STDIN:
        return [InputFile(source or "stdin", STDIN, STDIN)]
    if argument.startswith("@") and not _exists(argument):
        return _expand_list(Path(argument[1:]), source, depth)
    named = _NAMED.fullmatch(argument)
    if named is not None and not _exists(argument):
        return expand_input(named[2], source or named[1], depth)
    path = Path(argument)
    if not _exists(argument):
        pass  # perhaps a pattern
    elif path.is_dir():
        name = source or _clean(path.resolve().name) or "root"
        return [InputFile(name, _uri(relative), os.path.join(argument, relative)) for relative in _walk(argument)]  # noqa: PTH118
    elif path.is_file():
        return [InputFile(source or _stem(path.name), _uri(path.name), argument)]
    else:
        raise UsageError(
            f"the input {argument} is neither a file nor a directory",
            hint="what comes out of a pipe is read from standard input: name it -",
            code="bad-input",
        )
    if any(character in argument for character in "*?["):
        return _expand_glob(argument, source)
    raise UsageError(
        f"the input {argument} doesn't exist",
        hint="name files, directories, quoted globs, @list.txt or - for standard input",
        code="missing-input",
        file=argument,
    )


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 (false, not an error, for a name that is too long or holds NUL)


def _expand_list(path: Path, source: str | None, depth: int) -> list[InputFile]:
    """One argument a line; relative ones start at the list's directory; blank lines and lines with # are skipped."""
    if depth >= _MAX_LIST_DEPTH:
        raise UsageError(
            f"{path}: lists name lists {_MAX_LIST_DEPTH} deep", hint="does one name itself?", code="bad-list"
        )
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except FileNotFoundError:
        raise UsageError(
            f"the list {path} doesn't exist",
            hint="@FILE names a file with one input a line",
            code="missing-input",
            file=str(path),
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"can't read the list {path}: {error}",
            hint="a list is a UTF-8 text with one input a line",
            code="unreadable",
            file=str(path),
        ) from None
    files = []
    for line in lines:
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        if entry == STDIN:
            raise UsageError(f"{path}: a list can't name standard input", code="bad-list")
        files += expand_input(_below(entry, path.parent), source, depth + 1)
    return files


def _below(entry: str, directory: Path) -> str:
    """``entry`` of a list, its path part taken from ``directory`` when it is relative."""
    prefix, rest = ("@", entry[1:]) if entry.startswith("@") else ("", entry)
    named = _NAMED.fullmatch(rest)
    if named is not None and not (directory / rest).exists():
        prefix, rest = prefix + named[1] + "=", named[2]
    return prefix + str(directory / rest)


def _expand_glob(pattern: str, source: str | None) -> list[InputFile]:
    segments = Path(pattern).parts
    n_fixed = next(i for i, segment in enumerate(segments) if any(c in segment for c in "*?["))
    root = Path(*segments[:n_fixed]) if n_fixed else Path()
    wanted = segments[n_fixed:]
    if root.is_dir():
        matcher = _glob_regex(wanted)
        hidden = any(segment.startswith(".") for segment in wanted)
        name = source or _clean(root.resolve().name) or "root"
        prefix = str(root) if n_fixed else ""
        files = [
            InputFile(name, _uri(relative), os.path.join(prefix, relative))  # noqa: PTH118
            for relative in _walk(str(root), with_hidden=hidden)
            if matcher.fullmatch(relative)
        ]
        if files:
            return files
    raise UsageError(
        f"nothing matches the input {pattern}", hint="is the pattern quoted and the path right?", code="missing-input"
    )


def _glob_regex(segments: Sequence[str]) -> re.Pattern[str]:
    """A pattern for relative paths; a match of all segments by a directory takes what lies below it."""
    text = ""
    for i, segment in enumerate(segments):
        if segment == "**":
            text += r"(?:(?!\.)[^/]+/)*"
            if i == len(segments) - 1:
                text += r"(?!\.)[^/]+"
            continue
        text += _segment_regex(segment) + ("/" if i < len(segments) - 1 else "")
    return re.compile(text + r"(?:/.*)?", re.DOTALL)


def _segment_regex(segment: str) -> str:
    text = "" if segment.startswith(".") else r"(?!\.)"
    at = 0
    while at < len(segment):
        character = segment[at]
        close = segment.find("]", at + 2) if character == "[" else -1
        if character == "*":
            text += "[^/]*"
        elif character == "?":
            text += "[^/]"
        elif close > 0:
            body = segment[at + 1 : close]
            negated = body[0] in "!^"
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", body[1:] if negated else body)
            text += f"[{'^/' if negated else ''}{members}]"
            at = close
        else:
            text += re.escape(character)
        at += 1
    return text


def _walk(root: str, with_hidden: bool = False) -> list[str]:
    """Relative paths of the files below ``root``, by the bytes of the path."""
    found = list(_walk_below(root, "", with_hidden, (os.path.realpath(root),)))
    found.sort(key=os.fsencode)
    return found


def _walk_below(root: str, below: str, with_hidden: bool, ancestors: tuple[str, ...]) -> Iterator[str]:
    directory = os.path.join(root, below)  # noqa: PTH118
    try:
        with os.scandir(directory) as listing:
            entries = list(listing)
    except OSError as error:
        raise DataError(
            f"can't list the directory {directory}: {error.strerror}", code="unreadable", file=directory
        ) from None
    for entry in entries:
        if entry.name.startswith(".") and not with_hidden:
            continue
        relative = below + entry.name
        if _is_directory(entry):
            real = os.path.realpath(entry.path) if entry.is_symlink() else ancestors[-1] + os.sep + entry.name
            if real in ancestors:
                raise DataError(
                    f"{entry.path} is a link to a directory it lies in ({real}): a loop",
                    hint="remove the link, or name the directories to read",
                    code="symlink-loop",
                    file=entry.path,
                )
            yield from _walk_below(root, relative + "/", with_hidden, (*ancestors, real))
        elif _is_file(entry):
            yield relative
        elif entry.is_symlink():
            reason, code = _broken_link(entry.path)
            raise DataError(
                f"{entry.path} is a link that {reason}",
                hint="remove it, or name the files to read",
                code=code,
                file=entry.path,
            )
        # a socket, pipe or device in a tree is no document


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _broken_link(path: str) -> tuple[str, str]:
    try:
        os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return "leads nowhere", "broken-link"
    except OSError:
        return "leads to itself", "symlink-loop"
    return "leads to no file", "broken-link"


def _same_path(left: str, right: str) -> bool:
    return os.path.abspath(left) == os.path.abspath(right)  # noqa: PTH100


def _uri(relative: str) -> str:
    # A name that isn't UTF-8 is spelled with escapes: records hold text, and the spelling is the same on every system.
    return os.fsencode(relative).decode("utf-8", "backslashreplace")


def _clean(name: str) -> str:
    return _uri(name).replace("/", "-")


def _stem(name: str) -> str:
    """A file's name without the suffixes that say how it is stored: ``wiki.jsonl.zst`` -> ``wiki``."""
    stem = _clean(name)
    for suffixes in (_COMPRESSION_SUFFIXES, _FORMAT_SUFFIXES):
        for suffix in suffixes:
            if stem.lower().endswith(suffix) and len(stem) > len(suffix):
                stem = stem[: -len(suffix)]
                break
    return stem

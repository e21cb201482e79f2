"""Reading JSON of unknown origin: every refusal names the file and the place in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from tokctl.errors import ArtifactError

T = TypeVar("T")


def read_json(path: Path) -> Any:
    """The value in a JSON file; ArtifactError for a missing, truncated or doubly-keyed file, with the byte offset."""
    data = read_file(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArtifactError(
            f"not UTF-8 at byte {error.start}", code="not-json", file=str(path), offset=error.start
        ) from None
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        raise ArtifactError(
            f"not JSON, or cut short: {error.msg} at line {error.lineno}, column {error.colno}",
            hint="fetch or write the file again",
            code="not-json",
            file=str(path),
            offset=offset,
        ) from None
    except _RepeatedKey as error:
        raise ArtifactError(
            f"the key {error.args[0]!r} comes twice in one object", code="not-json", file=str(path)
        ) from None
    except RecursionError:
        raise ArtifactError("the JSON is nested too deeply", code="not-json", file=str(path)) from None


def read_file(path: Path) -> bytes:
    """The bytes of a file, ArtifactError if it can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ArtifactError(f"there is no file {path}", code="missing-file", file=str(path)) from None
    except OSError as error:
        raise ArtifactError(f"can't read {path}: {error.strerror}", code="unreadable", file=str(path)) from None


class _RepeatedKey(Exception):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RepeatedKey(key)
            seen.add(key)
    return value


class Reader:
    """Takes typed members out of one JSON object and says where it was when something is wrong."""

    def __init__(self, value: Any, path: Path, where: str = "$") -> None:
        if not isinstance(value, dict):
            raise ArtifactError(f"{where} is {kind_of(value)}, not an object", code="wrong-shape", file=str(path))
        self.value = value
        self.path = path
        self.where = where
        self._taken: set[str] = set()

    def take(self, key: str, kind: type[T] | tuple[type[T], ...], **default: T) -> T:
        """The member ``key`` of the given type; ``default=`` makes it optional."""
        self._taken.add(key)
        if key not in self.value:
            if "default" in default:
                return default["default"]
            raise self.error(f"{self.where} lacks {key!r}", code="missing-member")
        found = self.value[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and bool not in _types(kind)):
            expected = " or ".join(t.__name__ for t in _types(kind))
            raise self.error(f"{self.where}.{key} is {kind_of(found)}, not {expected}", code="wrong-shape")
        return found

    def object(self, key: str) -> Reader:
        """The member ``key`` as an object of its own."""
        return Reader(self.take(key, dict), self.path, f"{self.where}.{key}")

    def error(self, message: str, *, code: str, hint: str | None = None) -> ArtifactError:
        """An ArtifactError about this file."""
        return ArtifactError(message, code=code, hint=hint, file=str(self.path))

    def refuse_others(self) -> None:
        """ArtifactError for a member that nobody took: it might change what the tokenizer does."""
        others = sorted(self.value.keys() - self._taken)
        if others:
            raise self.error(
                f"{self.where} holds {', '.join(map(repr, others))}, which is not known", code="unknown-member"
            )


def _types(kind: Any) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def kind_of(value: Any) -> str:
    """A JSON value's kind in words."""
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names[type(value)]

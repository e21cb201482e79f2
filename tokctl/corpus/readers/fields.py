"""Fields of a structured record (a JSON object, a Parquet row): dotted paths, and what may stand in each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tokctl.artifacts.canonical import MAX_SAFE_INTEGER
from tokctl.corpus.read_options import ReadOptions

ABSENT = object()
_MAX_DEPTH = 64


class BadField(Exception):
    """A field that can't be used: ``reason`` is a slug, ``evidence`` says which field and what is in it."""

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(evidence)
        self.reason = reason
        self.evidence = evidence


class RecordFields(NamedTuple):
    """Everything of a record but its text, checked."""

    own_id: str | None
    language: str | None
    license: str | None
    group_id: str | None
    meta: dict[str, Any]


def look_up(record: Mapping[str, Any], path: str) -> Any:
    """The value at ``path``: a key spelled so, else the dotted path. ABSENT when there is none."""
    if path in record:
        return record[path]
    value: Any = record
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return value


def record_fields(record: Mapping[str, Any], options: ReadOptions) -> RecordFields:
    """The id, language, licence, group and meta fields of ``record``. Raises BadField."""
    own_id = None
    if options.id_field is not None:
        own_id = _label(record, options.id_field)
        if not own_id:
            raise BadField("missing-id", f"the id field {options.id_field!r} is missing, null or empty")
    extra = {}
    for path in options.meta_fields:
        value = look_up(record, path)
        if value is not ABSENT:
            extra[path] = meta_value(value, path)
    return RecordFields(
        own_id,
        _label(record, options.language_field),
        _label(record, options.license_field) or options.license,
        _label(record, options.group_field),
        extra,
    )


def _label(record: Mapping[str, Any], path: str | None) -> str | None:
    """A short string or integer of a record; None when it is absent or null."""
    value = ABSENT if path is None else look_up(record, path)
    if value is ABSENT or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise BadField("bad-field", f"the field {path!r} is {kind(value)}, expected a string or an integer")
    return checked(_integer(value) if isinstance(value, int) else value, path)


def checked(text: str, path: str | None) -> str:
    """``text`` if it can be written in UTF-8. Raises BadField for a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadField("lone-surrogate", f"the field {path!r} holds a lone surrogate") from None
    return text


def meta_value(value: Any, path: str, depth: int = 0) -> Any:
    """``value`` as canonical JSON can hold it: numbers that aren't safe integers become strings. Raises BadField."""
    if depth > _MAX_DEPTH:
        raise BadField("bad-field", f"the field {path!r} is nested more than {_MAX_DEPTH} deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else _integer(value)
    if isinstance(value, str):
        return checked(value, path)
    if isinstance(value, (list, tuple)):
        return [meta_value(item, path, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {checked(str(key), path): meta_value(item, path, depth + 1) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return checked(str(value), path)


def _integer(value: int) -> str:
    # str() refuses more than 4,300 digits, which JSON can't deliver either (its parser has the same limit)
    return str(value)


def kind(value: Any) -> str:
    """What JSON calls the type of ``value``."""
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return type(value).__name__


_KINDS: tuple[tuple[Any, str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),
    (str, "a string"),
    ((int, float), "a number"),
    (Mapping, "an object"),
    ((list, tuple), "an array"),
)

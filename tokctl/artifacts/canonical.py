"""Canonical JSON: one byte string for one value, so that a digest of it is a digest of the value.

Follows RFC 8785 where the profiles overlap: keys sorted by UTF-16 code units, no insignificant white space, UTF-8 with
only the escapes that JSON demands. Narrower than RFC 8785 in its values: null, booleans, strings, arrays, objects and
integers within ±(2**53 - 1). Anything else is written as a string by the caller, who says how.
"""

from __future__ import annotations

import json
from typing import Any

from tokctl.errors import ArtifactError

MAX_SAFE_INTEGER = 2**53 - 1


def canonical_json(value: Any) -> bytes:
    """The canonical bytes of ``value``.

    Raises ArtifactError for a float, an integer beyond ±(2**53 - 1), a key that is not a string, a lone surrogate or
    any other type, naming its place in the value.
    """
    try:
        ordered = _ordered(value)
    except _Refused as refused:
        place = "$" + "".join(reversed(refused.steps))
        raise ArtifactError(
            f"not canonical JSON at {place}: {refused.what}", hint=refused.hint, code="not-canonical"
        ) from None
    # the standard encoder escapes just what RFC 8785 does, and writes these types in only one way
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


class _Refused(Exception):
    """A value without a canonical form; ``steps`` lead to it, innermost first."""

    def __init__(self, what: str, hint: str | None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.steps: list[str] = []


def _ordered(value: Any) -> Any:
    """``value`` with the keys of its objects in canonical order, everything in it checked."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        _check_text(value, "the string", "store the bytes as hexadecimal")
        return value
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise _Refused(f"the integer {value} is beyond ±(2**53 - 1)", "write it as a decimal string")
        return value
    if isinstance(value, (list, tuple)):
        items = []
        for item in value:
            try:
                items.append(_ordered(item))
            except _Refused as refused:
                refused.steps.append(f"[{len(items)}]")
                raise
        return items
    if isinstance(value, dict):
        object_ = {}
        for key in _ordered_keys(value):
            try:
                object_[key] = _ordered(value[key])
            except _Refused as refused:
                refused.steps.append(f".{key}")
                raise
        return object_
    hint = "write it as a string in its shortest round-trip form" if isinstance(value, float) else None
    raise _Refused(f"a {type(value).__name__} has no canonical form", hint)


def _ordered_keys(value: dict[Any, Any]) -> list[str]:
    for key in value:
        if not isinstance(key, str):
            raise _Refused(f"the key {key!r} is not a string", "object keys are strings")
        _check_text(key, f"the key {key!r}", None)
    if all(map(str.isascii, value)):
        return sorted(value)
    return sorted(value, key=lambda key: key.encode("utf-16-be"))


def _check_text(text: str, what: str, hint: str | None) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _Refused(f"{what} holds a lone surrogate", hint) from None

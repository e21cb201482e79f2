"""Stage parameters: one frozen pydantic model per stage is its options, its TOML, its JSON Schema and its fingerprint."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from tokctl.artifacts.canonical import MAX_SAFE_INTEGER
from tokctl.errors import UsageError

ErrorPolicy = Literal["error", "replace", "skip", "bytes"]


class StageParameters(BaseModel):
    """Base of every stage's parameters: frozen, unknown names refused, defaults checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def param(
    default: Any = ...,
    *,
    help: str,  # noqa: A002
    affects_output: bool = True,
    option: str | None = None,
    metavar: str | None = None,
    bare: str | None = None,
    values: str | None = None,
    **constraints: Any,
) -> Any:
    """One parameter: its default, help text, bounds (pydantic's ``ge``, ``le`` ...), and whether it can change the output.

    ``option`` overrides the option's spelling (default: ``--`` and the name with dashes). ``bare`` is the value of an
    option that stands alone on the command line: before anything that the regular expression ``values`` doesn't match.
    """
    extra: Any = {"affects_output": affects_output, "option": option, "metavar": metavar}
    if bare is not None:
        extra |= {"bare": bare, "values": values}
    return Field(default, description=help, json_schema_extra=extra, **constraints)


_SIZE = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKMGT]?i?)(B?)\s*$")
_SIZE_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {"ki": 2**10, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def parse_quantity(value: Any) -> int:
    """``32k`` is 32,000, ``32Ki`` is 32,768, ``1.5GB`` is 1,500,000,000; a plain integer is itself.

    Raises ValueError (which pydantic reports) for anything else.
    """
    if isinstance(value, bool):
        raise ValueError("expected a whole number, plain or as in 64MB, 1GiB or 32k")
    if isinstance(value, int):
        return _countable(value)
    match = _SIZE.match(str(value).replace("_", ""))
    if match is None or match[2] == "i":
        raise ValueError(f"{value!r} is not a whole number from 0 up, plain or as in 64MB, 1GiB, 32k or 32Ki")
    unit = _SIZE_UNITS.get(match[2]) or _BINARY_UNITS[match[2]]
    number = Decimal(match[1]) * unit
    if number != int(number):
        raise ValueError(f"{value!r} is not a whole number")
    return _countable(int(number))


def _countable(number: int) -> int:
    if number > MAX_SAFE_INTEGER:
        raise ValueError(f"{number} is beyond 2**53 - 1, the largest number that a manifest holds")
    return number


Quantity = Annotated[int, BeforeValidator(parse_quantity)]
"""An integer that may be written with k/M/G (powers of ten) or Ki/Mi/Gi (powers of two), optionally followed by B."""


def _parse_decimal(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


ExactDecimal = Annotated[Decimal, BeforeValidator(_parse_decimal)]
"""A decimal number kept exactly as written; canonical JSON stores it as a string."""


def validate(model: type[StageParameters], values: Mapping[str, Any], *, origin: str) -> StageParameters:
    """A checked parameter object; ``origin`` ("options of 'count'", "pipeline.toml [stage.count]") begins each message.

    Names may be written with dashes. Raises UsageError naming the parameter, what was expected, and the nearest known name.
    """
    fields = model.model_fields
    given: dict[str, Any] = {}
    for name, value in values.items():
        key = name.replace("-", "_")
        if key not in fields:
            close = difflib.get_close_matches(key, list(fields), n=1)
            known = ", ".join(sorted(f.replace("_", "-") for f in fields))
            raise UsageError(
                f"{origin}: there is no parameter {name!r}",
                hint=f"did you mean {close[0].replace('_', '-')!r}?" if close else f"known: {known}",
                code="unknown-parameter",
            )
        given[key] = value
    try:
        return model(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-") if first["loc"] else "parameters"
        message = _PLAIN_WORDS.get(first["type"], first["msg"].removeprefix("Value error, "))
        hint = None
        field = fields.get(str(first["loc"][0])) if first["loc"] else None
        if field is not None and field.description:
            hint = f"{name}: {field.description}"
        raise UsageError(f"{origin}: {name}: {message}", hint=hint, code="bad-parameter") from None


_PLAIN_WORDS = {
    "missing": "it has to be given",
    "tuple_type": "expected a list",
    "string_type": "expected a string",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "decimal_parsing": "expected a number",
    "decimal_type": "expected a number",
}


def affects_output(field: FieldInfo) -> bool:
    """Whether a parameter is part of the fingerprint."""
    extra = field.json_schema_extra
    return not (isinstance(extra, dict) and extra.get("affects_output") is False)


def canonical_parameters(parameters: StageParameters) -> dict[str, Any]:
    """The parameters that affect the output, as canonical JSON: decimals as plain strings, tuples as lists."""
    return {
        name: _plain(getattr(parameters, name))
        for name, field in type(parameters).model_fields.items()
        if affects_output(field)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


def is_repeatable(annotation: Any) -> bool:
    """Whether a parameter takes several values (``tuple[str, ...]``)."""
    annotation = without_none(annotation)
    return typing.get_origin(annotation) in (tuple, list)


def without_none(annotation: Any) -> Any:
    """``X`` of ``X | None``; Annotated is unwrapped."""
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(rest) == 1:
            return without_none(rest[0])
    return annotation

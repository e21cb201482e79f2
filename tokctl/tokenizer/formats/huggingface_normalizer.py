"""The ``normalizer`` of ``tokenizer.json``, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.formats.huggingface_parts import flatten, kind_of, pattern_json, read_pattern, unsupported
from tokctl.tokenizer.normalizers import Normalizer
from tokctl.tokenizer.normalizers.lowercase import Lowercase
from tokctl.tokenizer.normalizers.prepend import Prepend
from tokctl.tokenizer.normalizers.replace import Replace
from tokctl.tokenizer.normalizers.strip import Strip
from tokctl.tokenizer.normalizers.unicode_form import UnicodeForm

# What tokenizers 0.23.3 implements, probed over all code points.
FORM_VERSION = "9.0.0"
CASE_VERSION = "17.0.0"

FORMS = {"NFC": "nfc", "NFD": "nfd", "NFKC": "nfkc", "NFKD": "nfkd"}
_NAMES = {form: name for name, form in FORMS.items()}


def read_normalizers(value: Any) -> tuple[Normalizer, ...]:
    """The normalizers, sequences flattened; ArtifactError names the place of one that is not supported."""
    return tuple(_read(step, where) for step, where in flatten(value, "$.normalizer", "normalizers"))


def _read(step: Any, where: str) -> Normalizer:
    kind = kind_of(step)
    try:
        if kind in FORMS:
            return UnicodeForm(FORMS[kind], FORM_VERSION)
        if kind == "Lowercase":
            return Lowercase(CASE_VERSION)
        if kind == "Replace":
            return Replace(read_pattern(step.get("pattern"), f"{where}.pattern"), step["content"])
        if kind == "Prepend":
            return Prepend(step["prepend"])
        if kind == "Strip":
            return Strip(bool(step["strip_left"]), bool(step["strip_right"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise unsupported("the normalizer", where, f"{kind} that is not complete ({error})") from None
    except UsageError as error:  # a pattern that isn't one
        raise ArtifactError(f"{where}: {error.message}", hint=error.hint, code=error.code) from None
    raise unsupported("the normalizer", where, kind)


def normalizer_json(normalizers: Sequence[Normalizer]) -> Any:
    """The inverse of ``read_normalizers``; ArtifactError where tokenizers would do something else."""
    steps = [_step_json(normalizer) for normalizer in normalizers]
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "normalizers": steps}


def _step_json(normalizer: Normalizer) -> dict[str, Any]:
    match normalizer:
        case UnicodeForm(form, version) if version == FORM_VERSION:
            return {"type": _NAMES[form]}
        case Lowercase(version) if version == CASE_VERSION:
            return {"type": "Lowercase"}
        case Replace(pattern, content):
            return {"type": "Replace", "pattern": pattern_json(pattern), "content": content}
        case Prepend(content):
            return {"type": "Prepend", "prepend": content}
        case Strip(left, right):
            return {"type": "Strip", "strip_left": left, "strip_right": right}
        case _:
            raise ArtifactError(
                f"tokenizer.json can't express the normalizer {normalizer.to_json()!r}",
                hint=f"the tokenizers library has the forms of Unicode {FORM_VERSION}, lower case of {CASE_VERSION}",
                code="not-expressible",
            )

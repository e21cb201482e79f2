"""The language of a document and where it is known from.

In order: the record's own column, a rule over the path, the HTML ``lang`` attribute, the run's default, ``und``. A column's
value and a path's match are taken as they are; an HTML attribute is checked and spelled in the usual case (``de-AT``).
"""

from __future__ import annotations

import functools
import re

UNDETERMINED = ("und", "none")
_TAG = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")


def by_path(name: str, rule: str | None) -> str | None:
    """The group of the first match of ``rule`` in ``source/uri``: the one called ``language``, else the first."""
    if rule is None:
        return None
    pattern = _compiled(rule)
    match = pattern.search(name)
    if match is None:
        return None
    return match["language" if "language" in pattern.groupindex else 1] or None


def decide(name: str, rule: str | None, column: str | None) -> tuple[str, str] | None:
    """(language, origin) by column or path, or None when neither says."""
    if column:
        return column, "column"
    found = by_path(name, rule)
    return (found, "path") if found else None


def fallback(default: str | None) -> tuple[str, str]:
    """(language, origin) of a document about which nothing is known."""
    return (default, "default") if default else UNDETERMINED


def html_language(attribute: str | None) -> str | None:
    """A ``lang`` attribute as a language tag, or None when it isn't one: ``EN_us`` -> ``en-US``, ``zh-hant`` -> ``zh-Hant``."""
    if attribute is None:
        return None
    tag = attribute.strip().replace("_", "-")
    if not _TAG.fullmatch(tag):
        return None
    first, *rest = tag.split("-")
    parts = [first.lower()]
    for part in rest:
        if len(parts[-1]) == 1 or not part.isalpha():  # after a singleton (x-, u-) nothing is a region
            parts.append(part.lower())
        else:
            parts.append({2: part.upper(), 4: part.title()}.get(len(part), part.lower()))
    return "-".join(parts)


@functools.lru_cache(maxsize=8)
def _compiled(rule: str) -> re.Pattern[str]:
    return re.compile(rule)

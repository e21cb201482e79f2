"""Extraction with trafilatura: more careful about boilerplate, many times slower; needs the extra ``trafilatura``."""

from __future__ import annotations

import re

from trafilatura import extract as trafilatura_extract

_LANG = re.compile(r"<html\b[^>]*?\slang\s*=\s*[\"']?([A-Za-z0-9_-]+)", re.IGNORECASE)


def extract(html: str, main_content: bool) -> tuple[str, str | None, str | None]:
    """The page's main content, or with ``main_content=False`` as much as trafilatura can be made to keep."""
    text = trafilatura_extract(
        html,
        output_format="txt",
        include_comments=not main_content,
        include_tables=True,
        favor_recall=not main_content,
        deduplicate=False,
    )
    match = _LANG.search(html[:4096])
    return text or "", match[1] if match else None, None

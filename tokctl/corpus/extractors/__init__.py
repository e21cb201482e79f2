"""Extractors: from a page to plain text.

An extractor is a function ``extract(html: str, main_content: bool) -> tuple[str, str | None, str | None]``: the text, the
``lang`` attribute of the page, and a note for ``meta.extraction`` or None. It runs in a process of its own that is killed when a
page takes too long (``process``), so this package imports nothing heavy. A user's own is named ``package.module:function``.
"""

from __future__ import annotations

EXTRACTORS: dict[str, str] = {
    "resiliparse": "tokctl.corpus.extractors.resiliparse:extract",
    "trafilatura": "tokctl.corpus.extractors.trafilatura:extract",
}
EXTRAS: dict[str, str] = {"trafilatura": "trafilatura"}  # extractor -> the extra that brings its package

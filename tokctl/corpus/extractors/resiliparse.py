"""Extraction with resiliparse: visible text with paragraphs, lists and preformatted blocks kept."""

from __future__ import annotations

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree


def extract(html: str, main_content: bool) -> tuple[str, str | None, str | None]:
    """The page's text. When the heuristics for the main content leave nothing, all visible text is taken and noted."""
    tree = HTMLTree.parse(html)
    text = _visible(tree, main_content)
    note = None
    if main_content and not text.strip():
        text = _visible(tree, False)
        note = "no main content found" if text.strip() else None
    root = tree.document.query_selector("html") if tree.document is not None else None
    return text, root.getattr("lang") if root is not None else None, note


def _visible(tree: HTMLTree, main_content: bool) -> str:
    # every option is spelled out: defaults have changed between releases
    return extract_plain_text(
        tree,
        preserve_formatting=True,
        main_content=main_content,
        list_bullets=True,
        alt_texts=False,
        links=False,
        form_fields=False,
        noscript=False,
        comments=True,
    )

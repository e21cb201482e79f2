"""The encoding of a page: byte-order mark, HTTP header, meta tag, validity as UTF-8, statistics. The first that speaks decides."""

from __future__ import annotations

import re

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from tokctl.corpus.text_encoding import first_invalid, split_bom

_META = re.compile(
    rb"""<meta\b[^>]{0,512}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)|<\?xml[^>]{0,256}?encoding\s*=\s*["']([A-Za-z0-9_.:-]+)""",
    re.IGNORECASE,
)
_META_WITHIN = 4096  # browsers look at 1024 bytes; pages with long comments before the tag exist


def page_encoding(raw: bytes, http_charset: str | None, forced: str | None) -> tuple[str, str]:
    """(Python codec, origin): origin is ``option``, ``bom``, ``http``, ``meta`` or ``detected``.

    Labels mean what browsers take them for (iso-8859-1 is cp1252); unknown labels don't count. A meta tag can't declare
    UTF-16, since it could not be read then; it means UTF-8.
    """
    if forced is not None:
        return forced, "option"
    marked, _ = split_bom(raw)
    if marked is not None:
        return marked, "bom"
    codec = map_encoding_to_html5(http_charset, fallback_utf8=False) if http_charset else None
    if codec:
        return codec, "http"
    match = _META.search(raw, 0, _META_WITHIN)
    if match is not None:
        label = (match[1] or match[2]).decode("ascii")
        codec = map_encoding_to_html5(label, fallback_utf8=False)
        if codec:
            return ("utf-8" if codec.startswith("utf-16") else codec), "meta"
    if first_invalid(raw) is None:
        return "utf-8", "detected"
    return detect_encoding(raw) or "utf-8", "detected"

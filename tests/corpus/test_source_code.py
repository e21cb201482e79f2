from __future__ import annotations

import pytest

from tokctl.corpus.source_code import HEAD, LANGUAGES, code_language, has_nul, looks_binary


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("src/a.py", "python"),
        ("A.CPP", "cpp"),
        ("Makefile", "makefile"),
        ("deep/CMakeLists.txt", "cmake"),
        ("x.unknown", None),
        (".py", None),
        ("py", None),
        ("a.tar", None),
    ],
)
def test_languages_by_name(name, language):
    assert code_language(name) == language


def test_the_table_is_in_lower_case():
    assert all(extension == extension.lower() and extension[0] == "." for extension in LANGUAGES)


def test_binary_or_text():
    assert looks_binary(b"\x89PNG\r\n\x1a\n\0\0\0")
    assert looks_binary("Grüße".encode("latin-1"))
    assert looks_binary(bytes(range(1, 9)) * 20)
    assert not looks_binary("Grüße\r\n\tx\x1b[0m".encode())
    assert not looks_binary("a\0".encode("utf-16"))
    assert not looks_binary(b"a" * (HEAD - 1) + "ü".encode())  # cut in a character
    assert looks_binary(b"a" * (HEAD - 5) + b"\xffaaaa")
    assert not looks_binary(b"")


def test_nul_beyond_the_head_is_not_looked_for():
    assert has_nul(b"a\0")
    assert not has_nul(b"a" * HEAD + b"\0")
    assert not has_nul("\ufeffa".encode("utf-16-le"))

from __future__ import annotations

import json

import pytest
from corpus.reading import read, reasons, texts

from tokctl.errors import DataError


def page(tmp_path, html: str | bytes, name: str = "x.html", encoding: str = "utf-8"):
    path = tmp_path / name
    path.write_bytes(html if isinstance(html, bytes) else html.encode(encoding))
    return path


def meta_of(row):
    return json.loads(row["meta"])


def test_preformatted_text_keeps_lines_and_indentation(tmp_path):
    path = page(tmp_path, "<body><p>A  b\nc</p><pre>def f():\n    return 1\n\n\n\tx = <b>2</b>\n</pre><p>d</p>")
    (row,), _ = read(path)
    assert row["text"] == "A b c\n\ndef f():\n    return 1\n\n\n\tx = 2\n\nd"
    (row,), _ = read(page(tmp_path, "<pre>   first\n  second</pre>"))
    assert row["text"] == "   first\n  second"


def test_main_content_or_everything(tmp_path):
    path = page(
        tmp_path, "<nav><a href=x>Menu</a></nav><main><p>Words.</p></main><script>x()</script><footer>Foot</footer>"
    )
    (row,), _ = read(path)
    assert row["text"] == "Words."
    (row,), _ = read(path, main_content=False)
    assert "Menu" in row["text"] and "Foot" in row["text"] and "x()" not in row["text"]


def test_without_main_content_everything_is_taken_and_noted(tmp_path):
    (row,), _ = read(page(tmp_path, "<div class=sidebar>Only here</div>"))
    assert row["text"] == "Only here"
    assert meta_of(row)["extraction"] == "no main content found"


@pytest.mark.parametrize(
    ("html", "encoding", "found", "origin"),
    [
        ("<p>Grüße", "utf-8", "utf-8", "detected"),
        ("\ufeff<meta charset=latin-1><p>Grüße", "utf-8", "utf-8", "bom"),
        ("\ufeff<p>Grüße", "utf-16-le", "utf-16-le", "bom"),
        ('<meta charset="ISO-8859-1"><p>Grüße', "latin-1", "cp1252", "meta"),
        (
            '<meta http-equiv=content-type content="text/html; charset=windows-1251"><p>Привет',
            "cp1251",
            "cp1251",
            "meta",
        ),
        ('<?xml version="1.0" encoding="koi8-r"?><p>Привет', "koi8-r", "koi8-r", "meta"),
        ("<meta charset=utf-16><p>Grüße", "utf-8", "utf-8", "meta"),
        ("<meta charset=nonsense><p>Grüße", "utf-8", "utf-8", "detected"),
        ("<p>Привет, как дела сегодня вечером у вас дома", "cp1251", "cp1251", "detected"),
    ],
)
def test_encodings(tmp_path, html, encoding, found, origin):
    (row,), _ = read(page(tmp_path, html, encoding=encoding))
    assert row["text"] == html[html.index("<p>") + 3 :]
    assert (meta_of(row)["encoding"], meta_of(row)["encoding_origin"]) == (found, origin)


def test_invalid_bytes(tmp_path):
    path = page(tmp_path, b"<meta charset=utf-8><p>a\xffb")
    with pytest.raises(DataError) as error:
        read(path)
    assert (error.value.code, error.value.where.offset) == ("invalid-utf8", 24)
    assert reasons(read(path, errors="skip")[1]) == ["invalid-utf8"]
    (row,), _ = read(path, errors="replace")
    assert (row["text"], meta_of(row)["n_invalid"]) == ("a\ufffdb", 1)
    (row,), _ = read(path, errors="bytes")
    assert row["text"] == "a\ufffdb".encode()


def test_the_first_bad_file_in_order_is_the_one_named(tmp_path):
    page(tmp_path, b"<meta charset=utf-8><p>\xff", "a.html")
    page(tmp_path, b"\xff", "b.txt")
    with pytest.raises(DataError) as error:
        read(tmp_path)
    assert error.value.where.file == str(tmp_path / "a.html")


def test_the_language_of_a_page(tmp_path):
    (tmp_path / "fr").mkdir()
    page(tmp_path, "<html lang=DE_at><p>a", "a.html")
    page(tmp_path, "<html lang='not a tag'><p>b", "b.html")
    page(tmp_path, "<html lang=en><p>c", "fr/c.html")
    rows, _ = read(tmp_path, language_from_path="/(..)/", language="nl")
    assert [(r["text"], r["language"], meta_of(r)["language_origin"]) for r in rows] == [
        ("a", "de-AT", "html-lang"),
        ("b", "nl", "default"),
        ("c", "fr", "path"),
    ]


def test_pages_without_text_and_empty_files(tmp_path):
    page(tmp_path, "<html><script>1</script>", "a.html")
    page(tmp_path, "", "b.html")
    page(tmp_path, "<p>x", "c.html")
    rows, rejects = read(tmp_path)
    assert texts(rows) == ["x"]
    assert [(r.uri, r.reason, r.doc_id) for r in rejects] == [
        ("a.html", "no-text", f"{tmp_path.name}/a.html"),
        ("b.html", "empty-document", f"{tmp_path.name}/b.html"),
    ]


def test_order_among_pages_and_other_files(tmp_path):
    expected = []
    for i in range(150):
        name = f"{i:03}"
        if i % 3:
            page(tmp_path, f"<p>{name}", f"{name}.html")
        else:
            page(tmp_path, name, f"{name}.txt")
        expected.append(name)
    assert texts(read(tmp_path)[0]) == expected


def test_what_the_parser_makes_of_strange_characters(tmp_path):
    (row,), _ = read(page(tmp_path, "<p>a&#xd800;b&#0;c\0d&lt;"))
    assert row["text"] == "a\ufffdb\ufffdcd<"

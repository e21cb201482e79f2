from __future__ import annotations

import os
from pathlib import Path

import pytest

from tokctl.corpus.inputs import InputFile, distinct, expand_input, expand_inputs
from tokctl.errors import DataError, UsageError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    for name in ("b.txt", "a/z.txt", "a/y.md", "a.txt", "Z.txt", ".hidden/x.txt", ".secret", "ü.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def uris(argument: str | Path, source: str | None = None) -> list[str]:
    return [file.uri for file in expand_input(str(argument), source)]


def test_a_directory_in_the_byte_order_of_relative_paths(tree):
    files = expand_input(str(tree))
    assert [f.uri for f in files] == ["Z.txt", "a.txt", "a/y.md", "a/z.txt", "b.txt", "ü.txt"]
    assert {f.source for f in files} == {"site"}
    assert [f.path for f in files] == [str(tree / f.uri) for f in files]


def test_a_directory_by_a_dot_has_its_real_name(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert [f.name for f in expand_input(".")][:2] == ["site/Z.txt", "site/a.txt"]


def test_a_hidden_directory_is_read_when_named(tree):
    assert [f.name for f in expand_input(str(tree / ".hidden"))] == [".hidden/x.txt"]


@pytest.mark.parametrize(
    ("name", "source"),
    [("wiki.jsonl.zst", "wiki"), ("a.b.txt", "a.b"), ("Makefile", "Makefile"), ("x.py", "x.py"), (".gz", ".gz")],
)
def test_a_file_is_named_by_its_stem(tmp_path, name, source):
    (tmp_path / name).write_bytes(b"x")
    assert expand_input(str(tmp_path / name)) == [InputFile(source, name, str(tmp_path / name))]


def test_the_source_can_be_given(tree):
    assert expand_input(f"docs={tree}")[0].name == "docs/Z.txt"
    assert [f.name for f in expand_input(str(tree / "b.txt"), "books")] == ["books/b.txt"]
    assert expand_input(f"docs={tree}", "books")[0].name == "books/Z.txt"


def test_a_file_with_an_equals_sign_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a=b.txt").write_text("x")
    assert [f.uri for f in expand_input("a=b.txt")] == ["a=b.txt"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["Z.txt", "a.txt", "b.txt", "ü.txt"]),
        ("?.txt", ["Z.txt", "a.txt", "b.txt", "ü.txt"]),
        ("[ab].txt", ["a.txt", "b.txt"]),
        ("[!ab].txt", ["Z.txt", "ü.txt"]),
        ("**/*.txt", ["Z.txt", "a.txt", "a/z.txt", "b.txt", "ü.txt"]),
        ("**", ["Z.txt", "a.txt", "a/y.md", "a/z.txt", "b.txt", "ü.txt"]),
        ("a*", ["a.txt", "a/y.md", "a/z.txt"]),  # a directory that matches is read whole
        (".hidden/*", [".hidden/x.txt"]),
        ("*/*.md", ["a/y.md"]),
    ],
)
def test_globs(tree, pattern, found):
    files = expand_input(str(tree / pattern))
    fixed = pattern.split("/")[0] if pattern.startswith(".hidden") else ""
    assert [f"{fixed}/{f.uri}" if fixed else f.uri for f in files] == found
    assert {f.source for f in files} == {fixed or "site"}
    assert all(Path(f.path).is_file() for f in files)


def test_a_glob_from_the_working_directory(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert expand_input("?.txt")[0] == InputFile("site", "Z.txt", "Z.txt")


def test_lists_are_relative_to_themselves(tree):
    (tree.parent / "list.txt").write_text("# two\nsite/b.txt\n\nsub=site/a\n@more.txt\n")
    (tree.parent / "more.txt").write_bytes(b"\xef\xbb\xbfsite/*.md\r\nsite/Z.txt")
    (tree / "r.md").write_text("r")
    names = [f.name for f in expand_input(f"@{tree.parent / 'list.txt'}")]
    assert names == ["b/b.txt", "sub/y.md", "sub/z.txt", "site/r.md", "Z/Z.txt"]


def test_a_list_that_names_itself(tmp_path):
    (tmp_path / "l.txt").write_text("@l.txt\n")
    with pytest.raises(UsageError, match="8 deep"):
        expand_input(f"@{tmp_path / 'l.txt'}")


def test_a_list_can_not_name_standard_input(tmp_path):
    (tmp_path / "l.txt").write_text("-\n")
    with pytest.raises(UsageError, match="standard input"):
        expand_input(f"@{tmp_path / 'l.txt'}")


@pytest.mark.parametrize("argument", ["nothing.txt", "no/*.txt", "@nothing.txt", "x=nothing.txt", "[", ""])
def test_what_does_not_exist(tmp_path, monkeypatch, argument):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        expand_input(argument)
    assert error.value.code == "missing-input"


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither a file nor a directory"):
        expand_input(str(tmp_path / "pipe"))
    (tmp_path / "x.txt").write_text("x")
    assert uris(tmp_path) == ["x.txt"]


def test_a_link_to_a_directory_is_followed_once(tree):
    (tree / "again").symlink_to(tree / "a", target_is_directory=True)
    assert [u for u in uris(tree) if u.startswith("again")] == ["again/y.md", "again/z.txt"]


@pytest.mark.parametrize("target", [".", "..", "../a"])
def test_a_loop_of_links_is_refused(tree, target):
    (tree / "a" / "loop").symlink_to(target, target_is_directory=True)
    with pytest.raises(DataError) as error:
        expand_input(str(tree))
    assert error.value.code == "symlink-loop"
    assert error.value.where.file is not None and error.value.where.file.endswith("loop")


def test_a_link_to_itself_and_a_broken_link(tree):
    (tree / "self").symlink_to("self")
    with pytest.raises(DataError) as error:
        expand_input(str(tree))
    assert error.value.code == "symlink-loop"
    (tree / "self").unlink()
    (tree / "gone").symlink_to("nowhere")
    with pytest.raises(DataError) as error:
        expand_input(str(tree))
    assert error.value.code == "broken-link"


def test_a_file_named_twice_is_read_once(tree, monkeypatch):
    monkeypatch.chdir(tree.parent)
    files = expand_inputs(["site", str(tree), "site/b.txt", "site/../site/b.txt"])
    assert [f.name for f in files].count("site/b.txt") == 1
    assert [f.name for f in files].count("b/b.txt") == 1


def test_two_files_of_one_name_are_refused(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.txt").write_text(name)
    with pytest.raises(UsageError, match=r"both be 'same/same\.txt'"):
        expand_inputs([str(tmp_path / "x/same.txt"), str(tmp_path / "y/same.txt")])
    assert len(expand_inputs([f"x={tmp_path / 'x'}", f"y={tmp_path / 'y'}"])) == 2


def test_names_round_trip(tree):
    for file in expand_inputs([str(tree)]):
        assert InputFile.from_name(file.name, file.path) == file
    assert InputFile.from_name("stdin", "/tmp/spool") == InputFile("stdin", "-", "/tmp/spool")
    assert InputFile.from_name("stdin", "/tmp/spool", "mine") == InputFile("mine", "-", "/tmp/spool")
    assert expand_input("-") == [InputFile("stdin", "-", "-")]


def test_a_name_that_is_not_utf8_is_spelled_out(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / os.fsdecode(b"\xff.txt")).write_bytes(b"x")
    (found,) = expand_input(str(tmp_path / "d"))
    assert found.uri == "\\xff.txt"
    assert Path(found.path).read_bytes() == b"x"


def test_an_unreadable_directory(tree):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tree / "a").chmod(0)
    try:
        with pytest.raises(DataError, match="can't list"):
            expand_input(str(tree))
    finally:
        (tree / "a").chmod(0o755)


def test_distinct_keeps_the_order():
    files = [InputFile("b", "1", "p"), InputFile("a", "1", "q"), InputFile("b", "1", "p")]
    assert distinct(files) == files[:2]

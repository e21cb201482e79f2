from __future__ import annotations

import os
import signal
import time

import pytest
from corpus.reading import read, reasons, texts

from tokctl.corpus.extractors import EXTRACTORS
from tokctl.corpus.extractors.process import Extracted, ExtractionProcess, NotExtracted, PageSource, shared_process
from tokctl.corpus.read_options import ReadOptions
from tokctl.errors import MissingExtra, UsageError

DEEP = b"<html><body>" + b"<div>" * 20_000 + b"x"
PLUGIN = """
import os, time, sys
def extract(html, main_content):
    print("chatter")
    if "kill" in html:
        os.kill(os.getpid(), 11)
    if "raise" in html:
        raise RuntimeError("no good")
    if "sleep" in html:
        time.sleep(60)
    if "surrogate" in html:
        return "a\\ud800", "xx", "note"
    return html.upper(), None, None
"""


@pytest.fixture
def process():
    made = []

    def make(**options):
        made.append(ExtractionProcess(ReadOptions(**options)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    (tmp_path / "shouting.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "shouting:extract"


def run(process, *pages):
    process.submit([PageSource(page, None) for page in pages])
    return process.collect()


def test_a_page_that_takes_too_long_is_stopped(process):
    child = process(time_limit=1)
    start = time.process_time(), time.monotonic()
    results = run(child, b"<p>one", DEEP, b"<p>two")
    assert [getattr(r, "text", None) or r.reason for r in results] == [b"one", "time-limit", b"two"]
    assert time.process_time() - start[0] < 1  # the parent only waits
    assert time.monotonic() - start[1] < 60


def test_time_spent_waiting_counts_in_the_end(process, plugin):
    (result,) = run(process(time_limit=1, extractor=plugin), b"sleep")
    assert isinstance(result, NotExtracted) and result.reason == "time-limit"


def test_a_plugin_that_fails_in_every_way(process, plugin):
    results = run(process(extractor=plugin), b"a", b"kill", b"raise", b"surrogate", b"b")
    assert [type(r) for r in results] == [Extracted, NotExtracted, NotExtracted, Extracted, Extracted]
    assert (results[0].text, results[4].text) == (b"A", b"B")
    assert (results[1].reason, results[1].evidence) == (
        "extractor-crashed",
        "the extraction process ended with status -11",
    )
    assert (results[2].reason, results[2].evidence) == ("extractor-failed", "RuntimeError: no good")
    assert (results[3].text, results[3].language, results[3].note) == (b"a?", "xx", "note")


def test_a_plugin_through_the_front_door(tmp_path, plugin):
    (tmp_path / "x.html").write_text("hi")
    (tmp_path / "y.html").write_text("raise")
    rows, rejects = read(tmp_path / "x.html", tmp_path / "y.html", extractor=plugin)
    assert (texts(rows), reasons(rejects)) == (["HI"], ["extractor-failed"])


def test_a_child_that_was_killed_is_replaced(process):
    child = process()
    run(child, b"<p>a")
    os.kill(child._child.pid, signal.SIGKILL)
    child._child.wait()
    results = run(child, b"<p>b", b"<p>c")
    assert isinstance(results[0], NotExtracted) and results[0].reason == "extractor-crashed"
    assert results[1].text == b"c"


def test_a_batch_that_was_given_up_is_dropped(process):
    child = process()
    child.submit([PageSource(b"<p>old", None)] * 3)
    assert [r.text for r in run(child, b"<p>new")] == [b"new"]


def test_large_batches_do_not_block(process):
    pages = [b"<p>" + b"word %d " % i * 20_000 for i in range(40)]
    assert [len(r.text) for r in run(process(), *pages)] == [len(page) - 4 for page in pages]


def test_extractors_that_can_not_be_loaded(process):
    with pytest.raises(UsageError, match="unknown"):
        process(extractor="newspaper")
    with pytest.raises(UsageError, match="can't be loaded"):
        run(process(extractor="no.such.module:f"), b"x")
    with pytest.raises(UsageError, match="can't be loaded"):
        run(process(extractor="json:no_such_function"), b"x")


def test_a_missing_extra_is_named(process, monkeypatch):
    monkeypatch.setitem(EXTRACTORS, "trafilatura", "a_package_that_is_missing:extract")
    with pytest.raises(MissingExtra) as error:
        run(process(extractor="trafilatura"), b"x")
    assert error.value.exit_code == 5
    assert error.value.hint == "pip install 'tokctl[trafilatura]'"


def test_one_child_for_the_same_options():
    assert shared_process(ReadOptions()) is shared_process(ReadOptions())
    assert shared_process(ReadOptions()) is not shared_process(ReadOptions(time_limit=9))


def test_trafilatura(tmp_path):
    pytest.importorskip("trafilatura")
    body = "".join(f"<p>{'A paragraph with enough words to be taken for content. ' * 5}</p>" for _ in range(4))
    (tmp_path / "x.html").write_text(
        f"<html lang=en><body><article>{body}</article><footer>Foot</footer></body></html>"
    )
    (row,), _ = read(tmp_path / "x.html", extractor="trafilatura")
    assert row["text"].startswith("A paragraph") and "Foot" not in row["text"]
    assert row["language"] == "en"

"""The extraction process: takes batches of pages on standard input, gives one result a page on standard output.

It starts fast (no Arrow, no numpy) and dies by a timer's signal when a page takes too long, which works inside native code
where no Python exception could be raised. Messages are ``marshal``: plain values, one Python on both sides.
"""

from __future__ import annotations

import importlib
import marshal
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from tokctl.corpus.extractors.page_encoding import page_encoding
from tokctl.corpus.text_encoding import Undecodable, decode, split_bom

Extract = Callable[[str, bool], tuple[str, str | None, str | None]]
WALL_FACTOR = 3  # a page that waits instead of computing is stopped after so many times its processor time


def main(reference: str, main_content: bool, errors: str, encoding: str | None, seconds: int) -> None:
    """Serve until standard input ends. The first message out is None, or why the extractor can't be loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    for timer_signal in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(timer_signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [timer_signal])
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an extractor prints must not end up among the messages
    module, _, name = reference.partition(":")
    try:
        extract: Extract = getattr(importlib.import_module(module), name)
    except Exception as error:
        marshal.dump((type(error).__name__, str(error)), sink)
        sink.flush()
        return
    marshal.dump(None, sink)
    sink.flush()
    try:
        while True:
            for raw, charset in marshal.load(source):
                signal.setitimer(signal.ITIMER_PROF, seconds)
                signal.setitimer(signal.ITIMER_REAL, seconds * WALL_FACTOR)
                result = _extract(extract, raw, charset, main_content, errors, encoding)
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
                marshal.dump(result, sink)
                sink.flush()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # the parent is gone


def _extract(
    extract: Extract, raw: bytes, charset: str | None, main_content: bool, errors: str, forced: str | None
) -> tuple[Any, ...]:
    """One of ("ok", text, language, note, encoding, origin, n_invalid, first_invalid), ("undecodable", encoding, offset, byte)
    and ("failed", why).
    """
    try:
        encoding, origin = page_encoding(raw, charset, forced)
        skip = split_bom(raw)[1] if origin == "bom" else 0
        # an extractor takes text, so invalid bytes can't be passed on
        decoded = decode(raw[skip:] if skip else raw, encoding, "replace" if errors == "bytes" else errors)
        text, language, note = extract(decoded.text.decode(), main_content)
        data = text.encode("utf-8", "replace")
    except Undecodable as error:
        return "undecodable", error.encoding, error.offset + skip, error.found
    except MemoryError:
        return "failed", "MemoryError"
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"[:500]
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how a defect inside a Rust library shows itself
            raise
        return "failed", f"panic: {error}"[:500]
    first = None if decoded.first_invalid is None else decoded.first_invalid + skip
    return "ok", data, language, note, encoding, origin, decoded.n_invalid, first


def arguments() -> tuple[str, bool, str, str | None, int]:
    """The command line of the process, as ``process`` writes it."""
    reference, main_content, errors, encoding, seconds = sys.argv[1:]
    return reference, main_content == "1", errors, encoding or None, int(seconds)

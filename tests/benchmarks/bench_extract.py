"""Extraction from HTML and WARC: the whole command, beside trafilatura and bare resiliparse on the same pages.

    python tests/benchmarks/bench_extract.py [--pages N] [--workers N] [--repeats N]

One JSON line a tool. Pages are the kernel's documentation. tokctl is ``tokctl extract`` as a user runs it: start-up, digests,
encodings, the process with its time limit, Parquet and manifest included; its baseline memory is the same command on one
page, and memory is the sum over its processes. The peers are loops over the pages in one process: trafilatura's own
``extract``, and resiliparse called as tokctl calls it, which is the floor. WARC is the same pages as responses in one
archive, plain and gzip by record.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness
from benchmarks.corpora import corpus


def pages(n: int | None) -> list[Path]:
    """``n`` pages, evenly spread over the sorted tree."""
    found = sorted(corpus("linux-doc").rglob("*.html"))
    return found if n is None else found[:: max(1, len(found) // n)][:n]


def warc_record(page: Path) -> bytes:
    """A response record of a page."""
    url = f"http://localhost/{page.relative_to(corpus('linux-doc'))}"
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page.read_bytes()
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{uuid5(NAMESPACE_URL, url)}>\r\n"
        f"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def write_inputs(scratch: Path, chosen: list[Path]) -> dict[str, Path]:
    """The pages as a tree, as a WARC file, and as a gzipped one."""
    inputs = {"html": scratch / "pages", "warc": scratch / "pages.warc", "warc.gz": scratch / "pages.warc.gz"}
    for page in chosen:
        place = inputs["html"] / page.relative_to(corpus("linux-doc"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, place)
    with inputs["warc"].open("wb") as plain, inputs["warc.gz"].open("wb") as zipped:
        for page in chosen:
            record = warc_record(page)
            plain.write(record)
            zipped.write(gzip.compress(record, mtime=0))
    return inputs


def by_trafilatura() -> Callable[[str], str]:
    import trafilatura

    return lambda html: trafilatura.extract(html, include_comments=False, include_tables=True) or ""


def by_resiliparse() -> Callable[[str], str]:
    from tokctl.corpus.extractors.resiliparse import extract

    return lambda html: extract(html, False)[0]


PEERS = {"trafilatura": by_trafilatura, "resiliparse": by_resiliparse}


def measure(peer: str, chosen: list[Path]) -> dict[str, Any]:
    """One peer over all pages, in this process; reading included."""
    extract = PEERS[peer]()
    extract(chosen[0].read_text("utf-8", errors="replace"))

    def run() -> int:
        return sum(len(extract(page.read_text("utf-8", errors="replace")).encode()) for page in chosen)

    text_bytes, usage = harness.measure(run)
    return {**usage, "text_bytes": text_bytes}


def measure_tokctl(source: Path, out: Path, workers: int) -> dict[str, Any]:
    """One run of the command."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "tokctl", "extract", source, "-o", out, "--workers", workers, "--quiet"]
    usage = harness.measure_command([str(part) for part in command])
    manifest = json.loads((out / "manifest.json").read_text())
    return {**usage, "counts": manifest["counts"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, help="only so many pages (default: all, about 2,800)")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", choices=list(PEERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    chosen = pages(arguments.pages)
    if arguments.here:
        print(json.dumps(measure(arguments.here, chosen)))
        return 0

    n_bytes = sum(page.stat().st_size for page in chosen)
    with tempfile.TemporaryDirectory(prefix="tokctl-bench-") as temporary:
        scratch = Path(temporary)
        os.environ["TOKCTL_CACHE_DIR"] = os.environ.get("TOKCTL_CACHE_DIR") or str(scratch / "cache")
        inputs = write_inputs(scratch, chosen)
        one = write_inputs(scratch / "one", chosen[:1])
        for kind, source in inputs.items():
            benchmark = f"extract {kind}, {arguments.workers} workers"
            base = measure_tokctl(one[kind], scratch / "out", arguments.workers)
            measured = harness.median(
                lambda source=source: measure_tokctl(source, scratch / "out", arguments.workers),
                repeats=arguments.repeats,
            )
            measured |= {
                "baseline_rss_mb": base["peak_rss_mb"],
                "n_pages": len(chosen),
                "start_up_seconds": base["wall_s"],
            }
            lines = [harness.result(benchmark, "tokctl", "tokctl", n_bytes, measured)]
            if kind == "html":
                options = [] if arguments.pages is None else ["--pages", arguments.pages]
                for peer in PEERS:
                    found = harness.here(__file__, options, peer, repeats=arguments.repeats, peer=True)
                    lines.append(harness.result(benchmark, peer, peer, n_bytes, found))
            harness.report(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())

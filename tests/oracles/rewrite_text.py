"""Normalisation forms of a whole text, character by character, with the characters that each one stands for."""

from __future__ import annotations

from functools import cache

from tokctl.tokenizer.normalization_tables import load

S_BASE, L_BASE, V_BASE, T_BASE, L_COUNT, V_COUNT, T_COUNT = 0xAC00, 0x1100, 0x1161, 0x11A7, 19, 21, 28


@cache
def _tables(form: str, version: str):
    table = load(version)
    mapping = table.mapping("decomposed")
    if "k" in form:
        mapping |= table.mapping("compatible")
    classes = dict(zip(table.combining_points.tolist(), table.combining_classes.tolist(), strict=True))
    pairs = {(first, second): composite for first, second, composite in table.composites.tolist()}
    return mapping, classes, pairs


def normalise(text: str, form: str, version: str) -> tuple[str, list[int]]:
    """``(normalised, sources)``: the number of the character of ``text`` that each character of the result stands for.

    ``form`` is nfc, nfd, nfkc or nfkd, with the tables of a Unicode version. Sources are counted as tokenizers does: every
    character of the result says how many characters it takes (1, plus those composed into it; 0 for the further ones of a
    decomposition, which share the place of the one before), and takes them in the order of the text.
    """
    mapping, classes, pairs = _tables(form, version)
    parts: list[tuple[int, int]] = []  # (code point, characters taken)
    for point in map(ord, text):
        spelled = mapping.get(point) or _hangul_parts(point)
        parts += [(part, int(k == 0)) for k, part in enumerate(spelled)]
    ordered: list[tuple[int, int]] = []
    run: list[tuple[int, int]] = []
    for part in [*parts, (0, 0)]:
        if classes.get(part[0], 0):
            run.append(part)
        else:
            ordered += sorted(run, key=lambda mark: classes[mark[0]])
            ordered.append(part)
            run = []
    ordered.pop()
    if form.endswith("c"):
        ordered = _composed(ordered, classes, pairs)
    sources: list[int] = []
    taken = 0
    for _, takes in ordered:
        sources.append(taken if takes else taken - 1)
        taken += takes
    return "".join(chr(point) for point, _ in ordered), sources


def _hangul_parts(point: int) -> list[int]:
    index = point - S_BASE
    if not 0 <= index < L_COUNT * V_COUNT * T_COUNT:
        return [point]
    parts = [L_BASE + index // (V_COUNT * T_COUNT), V_BASE + index % (V_COUNT * T_COUNT) // T_COUNT]
    return parts + ([T_BASE + index % T_COUNT] if index % T_COUNT else [])


def _composed(parts, classes, pairs):
    out: list[tuple[int, int]] = []
    starter = None
    for point, takes in parts:
        rank = classes.get(point, 0)
        if starter is not None:
            between = [classes.get(p, 0) for p, _ in out[starter + 1 :]]
            blocked = any(c == 0 or c >= rank for c in between)
            first, first_takes = out[starter]
            composite = None if blocked else pairs.get((first, point), _hangul_composite(first, point))
            if composite is not None:
                out[starter] = (composite, first_takes + takes)
                continue
        if rank == 0:
            starter = len(out)
        out.append((point, takes))
    return out


def _hangul_composite(first: int, second: int) -> int | None:
    if 0 <= first - L_BASE < L_COUNT and 0 <= second - V_BASE < V_COUNT:
        return S_BASE + ((first - L_BASE) * V_COUNT + second - V_BASE) * T_COUNT
    index = first - S_BASE
    if 0 <= index < L_COUNT * V_COUNT * T_COUNT and index % T_COUNT == 0 and 0 < second - T_BASE < T_COUNT:
        return first + second - T_BASE
    return None

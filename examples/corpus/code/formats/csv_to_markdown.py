"""Turn CSV into a Markdown table: numbers to the right, everything else to the left.

    python csv_to_markdown.py < prices.csv
"""

import csv
import sys


def is_number(cell):
    """Whether a cell is a number as people write it.

    >>> [is_number(cell) for cell in ("12", "-3.5", "1,000", "12 kg", "")]
    [True, True, True, False, False]
    """
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return False
    return True


def escape(cell):
    r"""A cell that can't break the table.

    >>> print(escape("a|b\nc"))
    a\|b<br>c
    """
    return cell.strip().replace("|", r"\|").replace("\n", "<br>")


def markdown(rows):
    """The table as a list of lines; short rows are filled up with empty cells.

    >>> print("\\n".join(markdown([["fruit", "price"], ["apple", "1.20"], ["pear"]])))
    | fruit | price |
    | :---- | ----: |
    | apple |  1.20 |
    | pear  |       |
    """
    rows = [[escape(cell) for cell in row] for row in rows]
    n_columns = max(map(len, rows), default=0)
    rows = [row + [""] * (n_columns - len(row)) for row in rows]
    header, *body = rows
    lines = []
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(n_columns)]
    numeric = [any(row[i] for row in body) and all(is_number(row[i]) for row in body if row[i]) for i in range(n_columns)]
    rule = ["-" * (w - 1) + ":" if right else ":" + "-" * (w - 1) for w, right in zip(widths, numeric)]
    for row in [header, rule, *body]:
        cells = [cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    table = list(csv.reader(sys.stdin))
    if not table:
        sys.exit("there is no row on standard input")
    print("\n".join(markdown(table)))

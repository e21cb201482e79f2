"""Draw a random sample of the lines of a JSON-lines file in one pass (reservoir sampling, Vitter's algorithm R)."""

import argparse
import json
import random
import sys


def sample(items, size, generator):
    """A list of `size` items, each equally likely, from an iterable of unknown length.

    >>> sorted(sample(range(3), 5, random.Random(0)))
    [0, 1, 2]
    >>> len(sample(range(1000), 10, random.Random(0)))
    10
    """
    reservoir = []
    for n, item in enumerate(items):
        if n < size:
            reservoir.append(item)
        else:
            place = generator.randrange(n + 1)
            if place < size:
                reservoir[place] = item
    return reservoir


def valid(lines, name):
    """The lines that are JSON objects; the others are counted and reported at the end."""
    n_bad = 0
    for number, line in enumerate(lines, 1):
        try:
            if not isinstance(json.loads(line), dict):
                raise ValueError("not an object")
        except ValueError as error:
            if n_bad == 0:
                print(f"{name}, line {number}: {error}", file=sys.stderr)
            n_bad += 1
        else:
            yield line
    if n_bad:
        print(f"{name}: {n_bad} lines left out", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with open(arguments.file, encoding="utf-8") as lines:
        for line in sample(valid(lines, arguments.file), arguments.size, random.Random(arguments.seed)):
            sys.stdout.write(line)


if __name__ == "__main__":
    main()

"""Remove repeated lines and keep the order of the first occurrences, in constant memory a line.

Unlike `sort -u` this does not sort, and unlike `uniq` it also finds repetitions that are far apart. It remembers eight
bytes for each distinct line, so a file of a hundred million lines needs less than a gigabyte.
"""

import hashlib
import sys


def fingerprint(line):
    """Eight bytes that stand for a line.

    >>> fingerprint(b"same") == fingerprint(b"same")
    True
    >>> fingerprint(b"same") == fingerprint(b"other")
    False
    """
    return hashlib.blake2b(line, digest_size=8).digest()


def unique(lines, ignore_case=False, ignore_space=False):
    """Yield each line the first time it occurs.

    >>> list(unique([b"a", b"b", b"A", b"a "]))
    [b'a', b'b', b'A', b'a ']
    >>> list(unique([b"a", b"b", b"A", b"a "], ignore_case=True, ignore_space=True))
    [b'a', b'b']
    """
    seen = set()
    for line in lines:
        key = line
        if ignore_case:
            key = key.lower()
        if ignore_space:
            key = b" ".join(key.split())
        key = fingerprint(key)
        if key not in seen:
            seen.add(key)
            yield line


def main():
    flags = set(sys.argv[1:])
    unknown = flags - {"--ignore-case", "--ignore-space"}
    if unknown:
        sys.exit(f"unknown option {sorted(unknown)[0]}; there are --ignore-case and --ignore-space")
    for line in unique(sys.stdin.buffer, "--ignore-case" in flags, "--ignore-space" in flags):
        sys.stdout.buffer.write(line)


if __name__ == "__main__":
    main()

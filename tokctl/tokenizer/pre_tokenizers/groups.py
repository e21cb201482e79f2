"""The capturing groups of a pattern, and what a back-reference may refer to."""

from __future__ import annotations


class Groups:
    """Groups are numbered from 1 in the order in which they open; some have names."""

    def __init__(self) -> None:
        self._names: list[str | None] = []
        self._closed: set[int] = set()

    def open(self, name: str | None) -> int:
        """The number of a new group."""
        self._names.append(name)
        return len(self._names)

    def close(self, number: int) -> None:
        """What comes after may refer to the group."""
        self._closed.add(number)

    def find(self, reference: str) -> int | str:
        """The number of the group that a number or a name means, or why it can't be used."""
        if reference.isdigit():
            if any(self._names):
                return "numbers of groups mean different things in different engines where some groups have names"
            number = int(reference)
        else:
            if self._names.count(reference) > 1:
                return f"several groups are called {reference!r}"
            number = self._names.index(reference) + 1 if reference in self._names else 0
        if not 1 <= number <= len(self._names):
            return f"there is no group {reference!r} before it"
        if number not in self._closed:
            return f"the back-reference is inside the group {reference!r} that it refers to"
        return number

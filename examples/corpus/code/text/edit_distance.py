"""Edit distance between two strings, and the edits that turn one into the other."""


def distance(a, b):
    """The number of insertions, deletions and replacements that turn a into b.

    >>> distance("kitten", "sitting")
    3
    >>> distance("", "abc"), distance("Straße", "Strasse")
    (3, 2)
    """
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


def edits(a, b):
    """The edits as (operation, position in a, character), last position first.

    >>> edits("cat", "cut")
    [('replace', 1, 'u')]
    >>> edits("cat", "cats")
    [('insert', 3, 's')]
    >>> edits("chat", "cat")
    [('delete', 1, 'h')]
    """
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (x != y))
    found = []
    i, j = len(a), len(b)
    while i or j:
        if i and j and table[i][j] == table[i - 1][j - 1] + (a[i - 1] != b[j - 1]):
            i, j = i - 1, j - 1
            if a[i] != b[j]:
                found.append(("replace", i, b[j]))
        elif j and table[i][j] == table[i][j - 1] + 1:
            j -= 1
            found.append(("insert", i, b[j]))
        else:
            i -= 1
            found.append(("delete", i, a[i]))
    return found


def closest(word, vocabulary, at_most=2):
    """The word of the vocabulary nearest to word, or None; ties go to the alphabetically first.

    >>> closest("tokeniser", ["tokenizer", "tokens", "token"])
    'tokenizer'
    >>> closest("xyz", ["tokenizer"]) is None
    True
    """
    best = min(((distance(word, other), other) for other in vocabulary), default=(at_most + 1, None))
    return best[1] if best[0] <= at_most else None

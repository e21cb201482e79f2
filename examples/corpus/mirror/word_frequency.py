"""Count the words of text files and print the commonest.

    python word_frequency.py --top 20 book.txt notes.txt
    cat book.txt | python word_frequency.py

A word is a run of letters, with apostrophes inside allowed: "don't" is one word, "'quoted'" is "quoted".
"""

import argparse
import re
import sys
from collections import Counter

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def words(text):
    """Yield the words of text in lower case.

    >>> list(words("Don't panic: it's 42 o’clock!"))
    ["don't", 'panic', "it's", 'o’clock']
    """
    for match in WORD.finditer(text):
        yield match.group().lower()


def count(lines):
    """Count the words of an iterable of lines.

    >>> sorted(count(["a b a", "c A"]).items())
    [('a', 3), ('b', 1), ('c', 1)]
    """
    counter = Counter()
    for line in lines:
        counter.update(words(line))
    return counter


def ranking(counter, top):
    """Pairs (word, count), most frequent first, equal counts in alphabetical order.

    >>> ranking(Counter({"b": 2, "a": 2, "c": 5}), 2)
    [('c', 5), ('a', 2)]
    """
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:top]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", help="text files in UTF-8; standard input when there is none")
    parser.add_argument("--top", type=int, default=20, help="how many words to print")
    arguments = parser.parse_args()

    total = Counter()
    if not arguments.files:
        total = count(sys.stdin)
    for name in arguments.files:
        with open(name, encoding="utf-8") as lines:
            total += count(lines)

    width = max((len(word) for word, _ in ranking(total, arguments.top)), default=0)
    n_words = sum(total.values())
    for word, n in ranking(total, arguments.top):
        print(f"{word:<{width}}  {n:>8,}  {n / n_words:7.2%}")


if __name__ == "__main__":
    main()

"""Words and how often they occur: the hinge between a corpus and a fit."""

from tokctl.corpus.word_counts.budget import Budget
from tokctl.corpus.word_counts.combine import merge_files
from tokctl.corpus.word_counts.counter import Batch, CountReport, WordCounter, count_words
from tokctl.corpus.word_counts.counts import WordCounts

__all__ = ["Batch", "Budget", "CountReport", "WordCounter", "WordCounts", "count_words", "merge_files"]

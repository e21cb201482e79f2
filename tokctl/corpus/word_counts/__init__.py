"""Words and how often they occur: the hinge between a corpus and a fit."""

from tokctl.corpus.word_counts.budget import Budget
from tokctl.corpus.word_counts.combine import merge_files
from tokctl.corpus.word_counts.counter import Batch, CountReport, WordCounter
from tokctl.corpus.word_counts.counts import WordCounts
from tokctl.corpus.word_counts.from_texts import count_words

__all__ = ["Batch", "Budget", "CountReport", "WordCounter", "WordCounts", "count_words", "merge_files"]

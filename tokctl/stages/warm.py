"""Compile every kernel by using it once on a handful of documents, so that the first real command doesn't wait."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

_TEXTS = (
    "the cat sat on the mat, the cat sat",
    "ein Baum, zwei Bäume <|x|> " * 3,
    "日本語のテキスト" * 4,
    "",
    "a" * 300,
)


def warm_kernels() -> None:
    """Run each kernel family on tiny input: a kernel has one signature, so that every later call uses what is compiled here."""
    _count_and_fit()
    _deduplicate()


def _count_and_fit() -> None:
    import pyarrow as pa

    from tokctl.corpus.fitting import fit
    from tokctl.corpus.word_counts import WordCounter, WordCounts
    from tokctl.tokenizer.dropout import Dropout
    from tokctl.tokenizer.models.bpe import BPE
    from tokctl.tokenizer.normalizers.unicode_form import UnicodeForm
    from tokctl.tokenizer.pre_tokenizers.matching import Pattern
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
    from tokctl.tokenizer.pre_tokenizers.split_by import SplitBy
    from tokctl.tokenizer.vocabulary import Vocabulary

    with tempfile.TemporaryDirectory(prefix="tokctl-warm-") as scratch:
        path = Path(scratch) / "words.parquet"
        counter = WordCounter(
            PreTokenizer.from_pattern("gpt2"), ["<|x|>"], memory_limit=64 << 20, spill_dir=Path(scratch)
        )
        counter.add_texts(pa.array(_TEXTS, pa.large_string()))
        counter.finish(path)
        words = WordCounts.read_parquet(path)
        words.check()
        WordCounts.merge([words, words])
    two_threads = WordCounter(PreTokenizer.from_pattern("gpt2"), workers=2)
    for _ in range(2):
        two_threads.add_texts(pa.array(_TEXTS, pa.large_string()))
    two_threads.finish_in_memory()
    fitted = {}
    for ties in ("ascending", "sentencepiece"):
        fitted[ties] = fit(
            "bpe", words, vocab_size=270, min_frequency=1, ties=ties, specials=["<|x|>"], on_short="warn"
        )
    tokenizer = fitted["ascending"]
    assert not isinstance(tokenizer, dict)
    few: dict[str, Any] = {
        "unit": "character",
        "limit_alphabet": 20,
        "max_dropped": 1,
        "specials": ["<|x|>"],
        "unk": "<|x|>",
    }
    characters = fit("bpe", words, vocab_size=60, on_short="warn", replay="all", **few)
    assert not isinstance(characters, dict)
    characters.encode_with_offsets(_TEXTS[1], "raw_codepoints")
    ids, _ = tokenizer.encode_flat(_TEXTS, allowed_special="all")
    tokenizer.decode_bytes(ids)
    tokenizer.encode_flat([text * 300 for text in _TEXTS], dropout=Dropout(0.5), split_policy="llama3")
    improper = BPE.from_merges(Vocabulary.from_tokens([b"a", b"aa", b"aaa"]), [(1, 0), (0, 0)])
    assert improper.schedule_dependent == [2]
    for text in _TEXTS:
        tokenizer.encode_with_offsets(text, "raw_codepoints", special_in_text="ordinary")
    rewriting = replace(
        tokenizer, normalizers=(UnicodeForm("nfc"),), steps=(SplitBy(Pattern(r"\s"), "merged-with-next"),)
    )
    rewriting.encode_with_offsets("e\u0301", "raw_codepoints")


def _deduplicate() -> None:
    import pyarrow as pa

    from tokctl.corpus.dedup.document_rows import DocumentRows
    from tokctl.corpus.dedup.minhash import SCHEMES, SignatureScheme
    from tokctl.corpus.dedup.near import NearDuplicateSearch, NearSettings
    from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule

    texts = [text * 3 for text in _TEXTS] * 2
    table = pa.table(
        {
            "doc_id": pa.array([str(i) for i in range(len(texts))], pa.large_string()),
            "source": pa.array(["warm"] * len(texts), pa.large_string()),
            "uri": pa.array([str(i) for i in range(len(texts))], pa.large_string()),
            "text": pa.array(texts, pa.large_string()),
        }
    )
    documents = DocumentRows.from_batches([table])
    for scheme in SCHEMES:
        with tempfile.TemporaryDirectory(prefix="tokctl-warm-") as scratch:
            settings = NearSettings(signature=SignatureScheme(scheme))
            with NearDuplicateSearch(documents, settings, scratch=Path(scratch)) as search:
                search.measure(Clusters(documents, search.run(), SurvivorRule()))

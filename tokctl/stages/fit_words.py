"""What ``fit`` reads: the words of documents, or of counts that were made before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tokctl.errors import UsageError
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import WORDS, count_documents
from tokctl.stages.documents import rejects_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tokctl.corpus.word_counts import WordCounts
    from tokctl.corpus.word_counts.first_seen import FirstSeenWords
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
    from tokctl.tokenizer.tokenizer import Tokenizer
    from tokctl.tokenizer.trainers.bpe_start import StartOptions


def fit_words(
    stage_run: StageRun, options: StartOptions
) -> tuple[WordCounts | FirstSeenWords, PreTokenizer, dict[str, str] | None]:
    """Words, their pre-tokenizer, and how often each special's spelling was carved out of the corpus (decimal strings)."""
    from tokctl.corpus.word_counts import WordCounts
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
    from tokctl.tokenizer.trainers.bpe_start import base_pre_tokenizer

    parameters = stage_run.parameters
    base = options.extend
    # what a base finds in a text before it splits it, and its control tokens, are no words
    specials = (
        tuple(dict.fromkeys((*(token.content for token in base.added_tokens), *parameters.special))) if base else ()
    )
    specials = specials or parameters.special
    rewrite = None
    if base is not None and (base.normalizers or base.steps):
        rewrite, specials = _pieces_of(base), parameters.special
    words: WordCounts | FirstSeenWords
    if stage_run.inputs["input"]:
        if base is not None:
            pre_tokenizer = base_pre_tokenizer(base, parameters.pattern, None)
        else:
            pre_tokenizer = PreTokenizer.from_pattern(parameters.pattern or options.default_pattern)
        if parameters.ties == "first-seen":
            from tokctl.corpus.word_counts.first_seen import first_seen_words
            from tokctl.stages.documents import document_batches

            with rejects_of(stage_run) as rejects:
                found_batches = document_batches(stage_run, "input", on_reject=rejects.add)
                batches = (batch.texts if rewrite is None else rewrite(batch.texts) for batch in found_batches)
                words, found = first_seen_words(batches, pre_tokenizer, specials)
            stage_run.rows_out = stage_run.rows_in - stage_run.rows_rejected
        else:
            report = count_documents(stage_run, pre_tokenizer, specials, rewrite=rewrite)
            words, found = WordCounts.read_parquet(report.path), report.specials
        return words, pre_tokenizer, {name: str(count) for name, count in found.items()}
    sources = stage_run.inputs["counts"]
    manifests = [item.manifest for item in sources if item.manifest is not None]
    pre_tokenizer = PreTokenizer.from_json(manifests[0].facts["pre_tokenizer"])
    if base is not None:
        base_pre_tokenizer(base, parameters.pattern, pre_tokenizer)
    elif parameters.pattern is not None and PreTokenizer.from_pattern(parameters.pattern) != pre_tokenizer:
        raise UsageError(
            f"--pattern {parameters.pattern} differs from the pattern these words were counted with ({pre_tokenizer.name})",
            hint="leave --pattern out, or count again with it",
            code="pattern-differs",
        )
    missing = [name for name in specials if any(name not in manifest.facts["specials"] for manifest in manifests)]
    if missing:
        stage_run.warn(
            f"the counts were made without carving out {', '.join(map(repr, missing))}: where the corpus spells them, "
            "they were counted as text (count with --special to carve them out)"
        )
    words = WordCounts.read_parquet(_counts_file(stage_run))
    stage_run.rows_in = stage_run.rows_out = words.n_words
    carved = {
        name: str(sum(int(manifest.facts["specials"].get(name, 0)) for manifest in manifests))
        for name in specials
        if any(name in manifest.facts["specials"] for manifest in manifests)
    }
    return words, pre_tokenizer, carved


def _pieces_of(base: Tokenizer) -> Callable[[pa.Array | pa.ChunkedArray], pa.Array]:
    """Texts -> the pieces in which a base that rewrites text finds its words."""

    def pieces_of(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        from tokctl.tokenizer.texts import flatten
        from tokctl.tokenizer.trainers.bpe_extend import text_pieces

        data, starts, stops = text_pieces(base, *flatten(texts))
        lengths = stops - starts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.arange(int(offsets[-1])) + np.repeat(starts - offsets[:-1], lengths)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[places])]
        return pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)

    return pieces_of


def _counts_file(stage_run: StageRun) -> Path:
    """The words of --counts; of several they are added up first, into the run's work directory."""
    from tokctl.corpus.word_counts import merge_files

    paths = [file.path for item in stage_run.inputs["counts"] for file in item.files if file.name.endswith(WORDS)]
    if len(paths) == 1:
        return paths[0]
    spill = stage_run.work_directory / "spill"
    spill.mkdir(exist_ok=True)
    merged = stage_run.work_directory / WORDS
    merge_files(paths, merged, spill_dir=spill)
    return merged

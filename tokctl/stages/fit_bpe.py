"""``tokctl fit bpe``: BPE from word counts or straight from text, over bytes, characters, or another tokenizer's tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from tokctl.errors import DataError, UsageError
from tokctl.runtime.parameters import ExactDecimal, Quantity, param, parse_quantity
from tokctl.runtime.stage import Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import WORDS, check_alike, count_documents, pattern_tables
from tokctl.stages.documents import ReadingParameters, check_fit_role, documents_input, fit_role, rejects_of
from tokctl.stages.tokenizer_files import TOKENIZER_STAGES, expand_tokenizer, load_tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

    from tokctl.corpus.word_counts import WordCounts
    from tokctl.corpus.word_counts.first_seen import FirstSeenWords
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
    from tokctl.tokenizer.tokenizer import Tokenizer
    from tokctl.tokenizer.trainers.bpe_start import StartOptions


def _sizes(value: Any) -> Any:
    """``8k,32k``, 8000, or a list of either."""
    items = value if isinstance(value, (list, tuple)) else [value]
    flat = [part for item in items for part in (item.split(",") if isinstance(item, str) else [item])]
    sizes = sorted({parse_quantity(part) for part in flat})
    if any(size < 1 for size in sizes):
        raise ValueError("a vocabulary has at least one token")
    return tuple(sizes)


def _replay(value: Any) -> Any:
    """``all``, ``auto`` or a number, which may be written as a size is; true is ``auto``, false nothing."""
    if isinstance(value, bool):
        return "auto" if value else None
    if value in (None, "all", "auto"):
        return value
    number = parse_quantity(value)
    if number < 1:
        raise ValueError("the number of merges to replay is 1 or more, all, or auto")
    return number


# What fit_bpe takes for each byte of distinct words: positions, occurrence lists and pairs (measured: 24 to 33).
_FIT_BYTES_PER_BYTE = 40


class FitBPEParameters(ReadingParameters):
    """Parameters of ``fit bpe``."""

    vocab_size: Annotated[tuple[int, ...], BeforeValidator(_sizes)] = param(
        help="Final size(s) of the vocabulary, specials included: 32k is 32,000, 32Ki is 32,768; several as 8k,32k.",
        metavar="N[,N...]",
    )
    pattern: str | None = param(
        None,
        help="Split pattern: a name, a regex, or none (default: gpt2, or what the counts were made with).",
        metavar="P",
    )
    byte_order: Literal["gpt2", "raw"] = param("gpt2", help="Ids of the 256 bytes: GPT-2's order or byte values.")
    unit: Literal["byte", "character"] = param("byte", help="What base tokens are: bytes, or the corpus's characters.")
    end_of_word: str = param(
        "</w>", help="With --unit character: what marks a word's end; '' for nothing.", metavar="MARKER"
    )
    end_of_word_as: Literal["suffix", "symbol"] = param(
        "suffix", help="The marker as part of the last character (subword-nmt), or a symbol behind it."
    )
    unk: str | None = param(
        None, help="The special that a character outside the alphabet becomes (default: an error).", metavar="NAME"
    )
    limit_alphabet: Quantity | None = param(None, help="The most characters to keep, the commonest first.", ge=1)
    character_coverage: ExactDecimal | None = param(
        None, help="Keep the commonest characters that make up this share of the corpus.", ge=0, le=1, metavar="SHARE"
    )
    max_dropped: ExactDecimal = param(
        Decimal("0.001"), help="Fail if the alphabet leaves out more than this share.", ge=0, le=1, metavar="SHARE"
    )
    ties: Literal["ascending", "descending", "first-seen", "sentencepiece", "subword-nmt"] = param(
        "ascending", help="Which of several equally frequent pairs is merged."
    )
    special: tuple[str, ...] = param(
        (), help="A special token (repeatable); its spelling in the corpus is carved out.", metavar="NAME"
    )
    special_layout: Literal["first", "after-bytes", "last"] = param("first", help="Where the specials' ids are.")
    bos: str | None = param(None, help="The special that encode --bos puts before a text.", metavar="NAME")
    eos: str | None = param(None, help="The special that encode --eos puts behind a text.", metavar="NAME")
    min_frequency: Quantity = param(2, help="A pair that is rarer isn't merged.", ge=0)
    max_token_bytes: Quantity | None = param(None, help="No token is longer (inclusive).", ge=1)
    on_short: Literal["error", "warn"] = param("error", help="When the corpus can't fill the vocabulary.")
    replay: Annotated[int | str | None, BeforeValidator(_replay)] = param(
        None,
        help="Count merges again from scratch and compare: a number, all, or auto (also without a value).",
        metavar="N|all",
        bare="auto",
        values=r"all|auto|[0-9]\w*",
    )


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """What has to be known before anything is read."""
    from tokctl.tokenizer.layout import Arithmetic, check_ends
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

    if parameters.pattern is not None:
        PreTokenizer.from_pattern(parameters.pattern)
    counts, documents = inputs["counts"], inputs["input"]
    if bool(counts) == bool(documents):
        raise UsageError(
            "fit bpe reads either --counts DIR or INPUT..., " + ("not both" if counts else "and neither is given"),
            hint="tokctl fit bpe --counts DIR -o DIR --vocab-size 32k",
            code="input-choice",
        )
    if counts and parameters.ties == "first-seen":
        raise UsageError(
            "--ties first-seen needs the text in its order; counts are sorted and have lost it",
            hint="name the text itself instead of --counts",
            code="first-seen-needs-text",
        )
    check_alike(counts)
    _check_unit(parameters, bool(inputs["extend"]))
    if not inputs["extend"]:
        fixed = Arithmetic(len(parameters.special), n_bytes=256 if parameters.unit == "byte" else 1)
        for size in parameters.vocab_size:
            fixed.for_size(size)
        check_ends(parameters.special, parameters.bos, parameters.eos, parameters.unk)
    for item in (*counts, *documents):
        check_fit_role(item)


_OF_CHARACTERS = ("end_of_word", "end_of_word_as", "unk", "limit_alphabet", "character_coverage", "max_dropped")


def _check_unit(parameters: Any, extends: bool) -> None:
    """Refuse options that what the fit begins with doesn't have."""
    fields = type(parameters).model_fields

    def given(*names: str) -> list[str]:
        return ["--" + name.replace("_", "-") for name in names if getattr(parameters, name) != fields[name].default]

    if extends and (wrong := given("byte_order", "unit", *_OF_CHARACTERS)):
        raise UsageError(
            f"{', '.join(wrong)}: an extension begins with the tokens of its base, so unit, byte order and alphabet are "
            "the base's",
            hint="leave them out",
            code="options-differ",
        )
    if parameters.unit == "byte" and (wrong := given(*_OF_CHARACTERS)):
        raise UsageError(
            f"{', '.join(wrong)}: this is for base tokens that are characters",
            hint="add --unit character",
            code="options-differ",
        )
    if parameters.unit == "character" and (wrong := given("byte_order")):
        raise UsageError("--byte-order is for base tokens that are bytes", hint="leave it out", code="options-differ")


def run(stage_run: StageRun) -> None:
    """Fit the largest size once and cut the smaller ones from it."""
    from tokctl.tokenizer.trainers.bpe_sizes import fit_sizes
    from tokctl.tokenizer.trainers.bpe_start import CharacterOptions, StartOptions, begin

    parameters = stage_run.parameters
    base = load_tokenizer(stage_run.inputs["extend"][0]) if stage_run.inputs["extend"] else None
    characters = None
    if parameters.unit == "character":
        characters = CharacterOptions(
            parameters.end_of_word,
            parameters.end_of_word_as,
            parameters.unk,
            parameters.limit_alphabet,
            parameters.character_coverage,
            parameters.max_dropped,
        )
    options = StartOptions(
        parameters.unit,
        None if base is not None or characters is not None else parameters.byte_order,
        None,
        characters,
        base,
        parameters.special,
        parameters.special_layout,
        parameters.bos,
        parameters.eos,
    )
    for size in parameters.vocab_size:
        options.fixed.for_size(size)
    words, pre_tokenizer, in_corpus = _words(stage_run, options)
    _check_memory(stage_run, words)
    start = begin(
        (words.data, words.offsets, words.total_counts()),
        pre_tokenizer,
        options,
        parameters.vocab_size[0],
        workers=stage_run.workers,
    )
    with contextlib.ExitStack() as phases:
        fitted = fit_sizes(
            start,
            vocab_sizes=parameters.vocab_size,
            special_layout=parameters.special_layout,
            ties=parameters.ties,
            min_frequency=parameters.min_frequency,
            max_token_bytes=parameters.max_token_bytes,
            on_short=parameters.on_short,
            replay_merges=parameters.replay,
            on_step=_phase(stage_run, phases, "fit"),
            on_replay=_phase(stage_run, phases, "replay"),
            on_warning=stage_run.warn,
        )
    fit = fitted.fit
    sizes: dict[str, Any] = {}
    for size, tokenizer in fitted.tokenizers.items():
        under = f"{size}/" if len(fitted.tokenizers) > 1 else ""
        tokenizer.save(stage_run.directory / under)
        for name in ("tokctl.json", "self-test.json"):
            stage_run.add_output(under + name)
        made = fitted.arithmetic[size]
        last = int(fit.pair_counts[made.n_merges - 1]) if made.n_merges else None
        sizes[str(size)] = {
            "arithmetic": str(made),
            **made.to_json(),
            "ambiguous_merges": int(fit.ambiguous[: made.n_merges].sum()),
            "last_pair_count": None if last is None else str(last),
            "tokens_in_corpus": str(int(fit.n_tokens[made.n_merges])),
            "semantic_hash": tokenizer.semantic_hash,
        }
    stage_run.facts |= {
        "sizes": sizes,
        **fitted.facts,
        "replay": None if fitted.replay is None else fitted.replay.to_json(),
        "stopped": fit.stopped,
        "shortfall": fitted.shortfall,
        "pattern": pre_tokenizer.name,
        "n_words": words.n_words,
        "total_words": str(words.total),
        "specials_in_corpus": in_corpus,
        "fit_split": fit_role((*stage_run.inputs["counts"], *stage_run.inputs["input"])),
    }


def _phase(stage_run: StageRun, phases: contextlib.ExitStack, name: str) -> Callable[[int, int], None]:
    """A progress phase that begins with the first ``(done, total)`` it is told, and ends the one before it."""
    updates: list[Callable[[int], None]] = []

    def on_step(done: int, total: int) -> None:
        if not updates:
            phases.close()
            updates.append(phases.enter_context(stage_run.phase(name, total, "merges")))
        updates[0](done)

    return on_step


def _check_memory(stage_run: StageRun, words: WordCounts | FirstSeenWords) -> None:
    """Say before the fit what it will need, and refuse what the limit has no room for."""
    n_bytes = int(words.offsets[-1] - words.offsets[0])
    estimate = _FIT_BYTES_PER_BYTE * n_bytes + words.offsets.nbytes + words.counts.nbytes
    stage_run.log(
        f"fitting {words.n_words:,} distinct words needs about {estimate / 1e6:,.0f} MB", estimated_bytes=estimate
    )
    limit = stage_run.memory_limit
    if limit is not None and estimate > limit:
        raise DataError(
            f"fitting needs about {estimate / 1e6:,.0f} MB for {n_bytes:,} bytes of distinct words; the limit is "
            f"{limit / 1e6:,.0f} MB",
            hint="raise --memory-limit, or fit on part of the corpus",
            code="memory-limit",
        )


def _words(
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


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    lines = [
        f"{size['arithmetic']}; {size['ambiguous_merges']:,} merges decided by the tie-break; {size['semantic_hash'][:16]}"
        for size in facts["sizes"].values()
    ]
    return lines + ([facts["shortfall"]] if facts["shortfall"] else [])


STAGE = Stage(
    name="fit bpe",
    version=2,
    summary="Fit a BPE tokenizer.",
    description=(
        "Fit a BPE tokenizer from word counts (--counts) or straight from text: byte-level, over the corpus's characters "
        "(--unit character), or behind the merges of another tokenizer (--extend). The final size is exactly specials + "
        "bytes or characters + merges. Several sizes are cut from one fit and written to DIR/<N>/."
    ),
    parameters=FitBPEParameters,
    inputs=(
        documents_input(
            "Text: the train directory of a split, other shard directories, or raw files.", required=False, is_set=False
        ),
        Input(
            "counts",
            "Word counts: the output of 'count' (several are added up).",
            option="--counts",
            required=False,
            many=True,
            accepts=("count",),
            is_set=True,
            metavar="DIR",
        ),
        Input(
            "extend",
            "A BPE tokenizer to continue: its ids and merges stay, its pattern is kept.",
            option="--extend",
            required=False,
            accepts=TOKENIZER_STAGES,
            expand=expand_tokenizer,
            metavar="BASE",
        ),
    ),
    run=run,
    headline=headline,
    check=check,
    data_tables=pattern_tables,
    examples=(
        "tokctl fit bpe --counts words -o tokenizers --vocab-size 8k,32k",
        "tokctl fit bpe corpus.txt -o tokenizer --vocab-size 32k --pattern cl100k --special '<|endoftext|>'",
        "tokctl fit bpe corpus.txt -o tokenizer --vocab-size 40k --extend base/32000 --replay",
        "tokctl fit bpe corpus.txt -o tokenizer --vocab-size 8k --unit character --special '<unk>' --unk '<unk>'",
    ),
)

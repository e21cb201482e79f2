"""``tokctl fit bpe``: byte-level BPE from word counts or straight from text; one fit serves many sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from tokctl.errors import DataError, UsageError
from tokctl.runtime.parameters import Quantity, param, parse_quantity
from tokctl.runtime.stage import Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import count_documents, pattern_tables
from tokctl.stages.documents import ReadingParameters, check_fit_role, documents_input, fit_role, rejects_of

if TYPE_CHECKING:
    from tokctl.corpus.word_counts import WordCounts
    from tokctl.corpus.word_counts.first_seen import FirstSeenWords
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer


def _sizes(value: Any) -> Any:
    """``8k,32k``, 8000, or a list of either."""
    items = value if isinstance(value, (list, tuple)) else [value]
    flat = [part for item in items for part in (item.split(",") if isinstance(item, str) else [item])]
    sizes = sorted({parse_quantity(part) for part in flat})
    if any(size < 1 for size in sizes):
        raise ValueError("a vocabulary has at least one token")
    return tuple(sizes)


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
    ties: Literal["ascending", "descending", "first-seen", "sentencepiece"] = param(
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


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """What has to be known before anything is read."""
    from tokctl.tokenizer.layout import check_ends, plan
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
    for size in parameters.vocab_size:
        plan(size, n_alphabet=256, n_specials=len(parameters.special))
    check_ends(parameters.special, parameters.bos, parameters.eos)
    for item in (*counts, *documents):
        check_fit_role(item)


def run(stage_run: StageRun) -> None:
    """Fit the largest size once and cut the smaller ones from it."""
    from tokctl.tokenizer.byte_order import byte_alphabet
    from tokctl.tokenizer.trainers.bpe_sizes import fit_sizes

    parameters = stage_run.parameters
    words, pre_tokenizer, in_corpus = _words(stage_run)
    _check_memory(stage_run, words)
    n_merges = parameters.vocab_size[-1] - 256 - len(parameters.special)
    with stage_run.phase("fit", n_merges, "merges") as update:
        fitted = fit_sizes(
            words.data,
            words.offsets,
            words.total_counts(),
            vocab_sizes=parameters.vocab_size,
            alphabet=byte_alphabet(parameters.byte_order),
            pre_tokenizer=pre_tokenizer,
            specials=parameters.special,
            special_layout=parameters.special_layout,
            bos=parameters.bos,
            eos=parameters.eos,
            ties=parameters.ties,
            min_frequency=parameters.min_frequency,
            max_token_bytes=parameters.max_token_bytes,
            on_short=parameters.on_short,
            on_step=lambda done, total: update(done),
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
        "stopped": fit.stopped,
        "shortfall": fitted.shortfall,
        "pattern": pre_tokenizer.name,
        "n_words": words.n_words,
        "total_words": str(words.total),
        "specials_in_corpus": in_corpus,
        "fit_split": fit_role((*stage_run.inputs["counts"], *stage_run.inputs["input"])),
    }


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


def _words(stage_run: StageRun) -> tuple[WordCounts | FirstSeenWords, PreTokenizer, dict[str, str] | None]:
    """Words, their pre-tokenizer, and how often each special's spelling was carved out of the corpus (decimal strings)."""
    from tokctl.corpus.word_counts import WordCounts
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

    parameters = stage_run.parameters
    words: WordCounts | FirstSeenWords
    if stage_run.inputs["input"]:
        pre_tokenizer = PreTokenizer.from_pattern(parameters.pattern or "gpt2")
        if parameters.ties == "first-seen":
            from tokctl.corpus.word_counts.first_seen import first_seen_words
            from tokctl.stages.documents import document_batches

            with rejects_of(stage_run) as rejects:
                batches = (batch.texts for batch in document_batches(stage_run, "input", on_reject=rejects.add))
                words, found = first_seen_words(batches, pre_tokenizer, parameters.special)
            stage_run.rows_out = stage_run.rows_in - stage_run.rows_rejected
        else:
            report = count_documents(stage_run, pre_tokenizer, parameters.special)
            words, found = WordCounts.read_parquet(report.path), report.specials
        return words, pre_tokenizer, {name: str(count) for name, count in found.items()}
    (source,) = stage_run.inputs["counts"]
    manifest = source.manifest
    assert manifest is not None
    pre_tokenizer = PreTokenizer.from_json(manifest.facts["pre_tokenizer"])
    if parameters.pattern is not None and PreTokenizer.from_pattern(parameters.pattern) != pre_tokenizer:
        raise UsageError(
            f"--pattern {parameters.pattern} differs from the pattern these words were counted with ({pre_tokenizer.name})",
            hint="leave --pattern out, or count again with it",
            code="pattern-differs",
        )
    carved = manifest.facts["specials"]
    missing = [name for name in parameters.special if name not in carved]
    if missing:
        stage_run.warn(
            f"the counts were made without carving out {', '.join(map(repr, missing))}: where the corpus spells them, "
            "they were counted as text (count with --special to carve them out)"
        )
    path = next(file.path for file in source.files if file.name.endswith("words.parquet"))
    words = WordCounts.read_parquet(path)
    stage_run.rows_in = stage_run.rows_out = words.n_words
    return words, pre_tokenizer, {name: carved[name] for name in parameters.special if name in carved}


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    lines = [
        f"{size['arithmetic']}; {size['ambiguous_merges']:,} merges decided by the tie-break; {size['semantic_hash'][:16]}"
        for size in facts["sizes"].values()
    ]
    return lines + ([facts["shortfall"]] if facts["shortfall"] else [])


STAGE = Stage(
    name="fit bpe",
    version=1,
    summary="Fit a byte-level BPE tokenizer.",
    description=(
        "Fit a byte-level BPE tokenizer from word counts (--counts) or straight from text. The final size is exactly "
        "specials + 256 bytes + merges. Several sizes are cut from one fit and written to DIR/<N>/."
    ),
    parameters=FitBPEParameters,
    inputs=(
        documents_input(
            "Text: the train directory of a split, other shard directories, or raw files.", required=False, is_set=False
        ),
        Input(
            "counts",
            "Word counts: the output of 'count'.",
            option="--counts",
            required=False,
            accepts=("count",),
            metavar="DIR",
        ),
    ),
    run=run,
    headline=headline,
    check=check,
    data_tables=pattern_tables,
    examples=(
        "tokctl fit bpe --counts words -o tokenizers --vocab-size 8k,32k",
        "tokctl fit bpe corpus.txt -o tokenizer --vocab-size 32k --pattern cl100k --special '<|endoftext|>'",
    ),
)

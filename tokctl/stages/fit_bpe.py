"""``tokctl fit bpe``: BPE from word counts or straight from text, over bytes, characters, or another tokenizer's tokens."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from tokctl.errors import DataError, UsageError
from tokctl.runtime.parameters import ExactDecimal, Quantity, param, parse_quantity
from tokctl.runtime.stage import Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import check_alike, pattern_tables
from tokctl.stages.documents import ReadingParameters, check_fit_role, documents_input, fit_role
from tokctl.stages.fit_words import fit_words
from tokctl.stages.tokenizer_files import TOKENIZER_STAGES, expand_tokenizer, load_tokenizer

if TYPE_CHECKING:
    from tokctl.corpus.word_counts import WordCounts
    from tokctl.corpus.word_counts.first_seen import FirstSeenWords
    from tokctl.tokenizer.trainers.bpe_resume import Progress


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


CHECKPOINT_SECONDS = 2.0  # a checkpoint is 30 bytes a merge

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
    words, pre_tokenizer, in_corpus = fit_words(stage_run, options)
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
            resume=_progress_made(stage_run),
            on_step=_phase(stage_run, phases, "fit"),
            on_progress=_checkpoints(stage_run),
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


def _checkpoints(stage_run: StageRun) -> Callable[[Callable[[], Progress]], None]:
    """Saves the fit's progress every ``CHECKPOINT_SECONDS``."""
    from tokctl.tokenizer.trainers.bpe_checkpoint import to_bytes

    last = time.monotonic()

    def on_progress(made: Callable[[], Progress]) -> None:
        nonlocal last
        if time.monotonic() - last >= CHECKPOINT_SECONDS:
            stage_run.save_checkpoint(to_bytes(made()))
            last = time.monotonic()

    return on_progress


def _progress_made(stage_run: StageRun) -> Progress | None:
    """What an earlier run of the same fit has saved."""
    from tokctl.tokenizer.trainers.bpe_checkpoint import from_bytes

    data = stage_run.load_checkpoint()
    progress = None if data is None else from_bytes(data)
    if progress is not None:
        stage_run.log(f"going on from {len(progress.fit.merges):,} merges of an earlier run")
    return progress


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

"""Tokenizer: normalizers, pre-tokenizer, model, post-processor, decoder and added tokens, as one value.

Without normalizers, steps and stripping added tokens text is encoded as it is, and decoding gives back exactly its
bytes; else it gives back what ``normalize`` says.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.errors import ArtifactError, DataError, UsageError
from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.added_tokens import AddedToken, Pieces
from tokctl.tokenizer.aligned import AlignedPieces
from tokctl.tokenizer.decoding import join_tokens, unknown_id
from tokctl.tokenizer.dropout import Dropout
from tokctl.tokenizer.encode_options import EncodeOptions
from tokctl.tokenizer.encoding import (
    Encoding,
    FlatEncoding,
    check_unit,
    space_margins,
)
from tokctl.tokenizer.locating import locate
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.models.bpe_characters import CharacterBPE
from tokctl.tokenizer.models.bpe_dropout import DropoutEncoder
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints, white_space
from tokctl.tokenizer.preparing import Preparer
from tokctl.tokenizer.split_policy import NO_POLICY, POLICIES, check_policy, cut_long_texts, whole_texts
from tokctl.tokenizer.template import NOTHING_ADDED, Template
from tokctl.tokenizer.texts import flatten, text_view, texts_of, utf8
from tokctl.tokenizer.vocabulary import UNUSED, Vocabulary

if TYPE_CHECKING:
    from tokctl.tokenizer.normalizers import Normalizer
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
    from tokctl.tokenizer.pre_tokenizers.steps import Step


@dataclass(frozen=True, eq=False, repr=False)
class Tokenizer:
    """Text to token ids and back. Frozen; threads may share one.

    Texts are ``str`` or ``bytes`` (any bytes; UTF-8 is not required). What a text says never becomes a control token
    unless ``allowed_special`` names it (an iterable of spellings, or ``"all"``); added tokens that are not special are
    found always. ``special_in_text="error"`` refuses a text that spells a control token which is not allowed;
    ``"ordinary"``, the default, encodes the spelling as text.

    ``add_special_tokens`` puts the template's tokens around each text; ``bos`` and ``eos`` make sure that the text
    begins and ends with that token, which is never put twice.

    ``split_policy="llama3"`` cuts long texts as Llama's own tokenizer does (see split_policy.py). ``dropout`` drops merges
    at random (see dropout.py): which ones depends on the text's ``sample`` name, by default the text itself.
    """

    pre_tokenizer: PreTokenizer
    model: BPE
    added_tokens: tuple[AddedToken, ...] = ()
    bos_token: str | None = None
    eos_token: str | None = None
    template: Template = NOTHING_ADDED
    notices: tuple[str, ...] = field(default=(), compare=False)
    """What a loaded file holds that this tokenizer doesn't follow, or follows in another way."""
    normalizers: tuple[Normalizer, ...] = ()
    steps: tuple[Step, ...] = ()
    """What the pre-tokenizer does before its split patterns (see ``pre_tokenizers.steps``)."""

    def __post_init__(self) -> None:
        tokens = sorted(self.added_tokens, key=lambda token: token.id)
        object.__setattr__(self, "added_tokens", tuple(tokens))
        by_content: dict[str, int] = {}
        for token in tokens:
            if not token.content or token.id < 0:
                raise ArtifactError(
                    f"the added token {token.content!r} (id {token.id}) is not valid", code="added-token"
                )
            if token.content in by_content or token.id in self._added_by_id:
                raise ArtifactError(
                    f"the added token {token.content!r} (id {token.id}) comes twice", code="added-token"
                )
            by_content[token.content] = token.id
            self._added_by_id[token.id] = token
        for name in (self.bos_token, self.eos_token):
            if name is not None and name not in by_content:
                raise ArtifactError(f"{name!r} is no added token, so it can't be bos or eos", code="unknown-special")
        unknown = sorted(i for i in self.template.ids if not self._is_known(i))
        if unknown or not self.template.is_valid():
            raise ArtifactError(f"the template is not valid (unknown ids: {unknown})", code="template")
        control = frozenset(token.id for token in tokens if token.special)
        for token_id in self.model.base_ids.tolist():
            if token_id in control:
                spelled = self._added_by_id[token_id].content
                raise ArtifactError(
                    f"the control token {spelled!r} (id {token_id}) is a base token of the alphabet, so text would yield it",
                    code="control-byte",
                )
        self._check_words()
        in_model = frozenset(i for i in control if i < len(self.model.vocabulary) and self.model.vocabulary.kinds[i])
        if self.model.control_ids != in_model:
            object.__setattr__(self, "model", replace(self.model, control_ids=in_model))

    def _check_words(self) -> None:
        """Dropped white space needs a marker at the ends of words, and an unknown token has to be an added one."""
        model = self.model
        marks_ends = isinstance(model, CharacterBPE) and model.end_of_word is not None
        if self.pre_tokenizer.drops_space and not marks_ends:
            raise ArtifactError(
                "the pre-tokenizer drops white space, and the model marks no ends of words, so decoding would run the words together",
                hint=r"split with \s+ to keep white space as words",
                code="white-space-lost",
            )
        if isinstance(model, CharacterBPE) and model.unknown_id is not None:
            unknown = self._added_by_id.get(model.unknown_id)
            if unknown is None or not unknown.special:
                raise ArtifactError(f"the unknown token {model.unknown_id} is no special token", code="unknown-special")

    # -- what there is

    def __repr__(self) -> str:
        return (
            f"Tokenizer(bpe, vocab_size={self.vocab_size}, pattern={self.pre_tokenizer.name!r}, "
            f"specials={list(self.special_ids)[:8]})"
        )

    @classmethod
    def from_merges(
        cls,
        alphabet: Any,
        merges: Iterable[Sequence[Any]],
        specials: Sequence[str] = (),
        pattern: str | None = None,
        **options: Any,
    ) -> Tokenizer:
        """A tokenizer from its base tokens and merges, as ``layout.from_merges`` describes."""
        from tokctl.tokenizer.layout import from_merges

        return from_merges(alphabet, merges, specials, pattern, **options)

    @cached_property
    def _added_by_id(self) -> dict[int, AddedToken]:
        return {}  # filled by __post_init__

    def _is_known(self, token_id: int) -> bool:
        kinds = self.model.vocabulary.kinds
        return token_id in self._added_by_id or (0 <= token_id < len(kinds) and kinds[token_id] != UNUSED)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes of every id, added tokens included (an added token's spelling wins over the model's).

        An added token with ``normalized`` has its normalised spelling, as in tokenizers.
        """
        tokens = self.model.spelled_tokens(self._separator)
        last = max((token.id for token in self.added_tokens), default=-1)
        tokens += [None] * (last + 1 - len(tokens))
        for token in self.added_tokens:
            tokens[token.id] = self._preparer.spelling(token)
        return Vocabulary.from_tokens(tokens)

    @property
    def _separator(self) -> bytes:
        """What stands between words where the pre-tokenizer drops white space."""
        return b" " if self.pre_tokenizer.drops_space else b""

    @property
    def is_lossless(self) -> bool:
        """Whether decoding gives back every text that can be encoded; not so where text is rewritten, white space becomes
        one space, or an unknown character the unknown token."""
        has_unknown = isinstance(self.model, CharacterBPE) and self.model.unknown_id is not None
        strips = any(token.lstrip or token.rstrip for token in self.added_tokens)
        return not (self.normalizers or self.steps or strips or self.pre_tokenizer.drops_space or has_unknown)

    @property
    def vocab_size(self) -> int:
        """The number of ids: one more than the highest. Ids that stand for nothing count too (``unused_ids``)."""
        return len(self.vocabulary)

    @property
    def unused_ids(self) -> list[int]:
        """Ids below ``vocab_size`` that stand for nothing."""
        return [int(i) for i in np.flatnonzero(self.vocabulary.kinds == UNUSED)]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one id decodes to; DataError for an id that stands for nothing."""
        token_id = operator.index(token_id)
        if not 0 <= token_id < self.vocab_size or self.vocabulary.kinds[token_id] == UNUSED:
            raise unknown_id(self.vocabulary, token_id)
        return self.vocabulary.token(token_id)

    @cached_property
    def special_ids(self) -> dict[str, int]:
        """The control tokens: spelling -> id, in id order."""
        return {token.content: token.id for token in self.added_tokens if token.special}

    def token_id(self, name: str) -> int:
        """The id of an added token by its spelling; UsageError if there is none."""
        for token in self.added_tokens:
            if token.content == name:
                return token.id
        raise UsageError(
            f"there is no added token {name!r}",
            hint=f"there are: {', '.join(map(repr, (t.content for t in self.added_tokens[:20]))) or 'none'}",
            code="unknown-special",
        )

    # -- encoding

    def encode(
        self,
        text: str | bytes,
        *,
        add_special_tokens: bool = False,
        bos: bool = False,
        eos: bool = False,
        allowed_special: Iterable[str] | str = (),
        special_in_text: str = "ordinary",
        split_policy: str = NO_POLICY,
        dropout: Dropout | None = None,
        sample: str | bytes | None = None,
    ) -> list[int]:
        """The ids of one text. Raises DataError for a lone surrogate, a byte outside the alphabet, a refused special."""
        around = add_special_tokens or bos or eos
        otherwise = allowed_special or special_in_text != "ordinary" or split_policy != NO_POLICY or dropout is not None
        if self._reads_as_it_is and not around and not otherwise:
            return self._encoder.encode_text(utf8(text)).tolist()
        options = EncodeOptions(
            add_special_tokens, bos, eos, allowed_special, special_in_text, split_policy, dropout, _one_sample(sample)
        )
        return self._encode(_one_text(text), options)[0].tolist()

    def encode_batch(self, texts: Any, *, workers: int = 1, **options: Any) -> list[list[int]]:
        """The ids of each text; options as in ``encode``, texts and workers as in ``encode_flat``."""
        ids, offsets = self.encode_flat(texts, workers=workers, **options)
        flat, bounds = ids.tolist(), offsets.tolist()
        return [flat[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)]

    def encode_flat(
        self,
        texts: Any,
        *,
        add_special_tokens: bool = False,
        bos: bool = False,
        eos: bool = False,
        allowed_special: Iterable[str] | str = (),
        special_in_text: str = "ordinary",
        split_policy: str = NO_POLICY,
        dropout: Dropout | None = None,
        samples: Any = None,
        workers: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """``(ids uint32[n], offsets int64[m + 1])``: text i has ``ids[offsets[i]:offsets[i + 1]]``.

        ``texts`` is an iterable of str or bytes or an Arrow string or binary array, which is read in place; ``samples``
        are their names for ``dropout`` (a sequence or an Arrow array of str or bytes). ``workers`` threads share the work;
        their number changes no id. Errors name the text's row.
        """
        options = EncodeOptions(
            add_special_tokens, bos, eos, allowed_special, special_in_text, split_policy, dropout, samples, workers
        )
        return self._encode(flatten(texts), options)

    def encode_with_offsets(
        self, text: str | bytes, unit: str = "raw_utf8_bytes", *, sample: str | bytes | None = None, **options: Any
    ) -> Encoding:
        """The ids of one text with offsets in ``unit`` (encoding.UNITS) and masks; options as in ``encode``."""
        return self._encode_offsets(_one_text(text), unit, EncodeOptions(samples=_one_sample(sample), **options)).text(
            0
        )

    def encode_flat_with_offsets(self, texts: Any, unit: str = "raw_utf8_bytes", **options: Any) -> FlatEncoding:
        """``encode_with_offsets`` of many texts, as arrays; texts and options as in ``encode_flat``."""
        return self._encode_offsets(flatten(texts), unit, EncodeOptions(**options))

    def _encode(self, texts: tuple[np.ndarray, np.ndarray], options: EncodeOptions) -> tuple[np.ndarray, np.ndarray]:
        data, offsets = texts
        prepared, _ = self._pieces(data, offsets, options, follow=False)
        ids, n_ids = self._run(data, offsets, prepared, options)
        return ids, _document_offsets(prepared.pieces, n_ids, len(offsets) - 1)

    def _encode_offsets(
        self,
        texts: tuple[np.ndarray, np.ndarray],
        unit: str,
        options: EncodeOptions,
    ) -> FlatEncoding:
        check_unit(unit)
        data, offsets = texts
        prepared, is_added = self._pieces(data, offsets, options, follow=True)
        if isinstance(self.model, CharacterBPE):
            self._check_options(options)
            words, owners = self._encoder.cut(prepared.data, prepared.pieces)
            prepared, is_added = replace(prepared, pieces=words), is_added[owners]
            ids, lengths, n_ids = self._encoder.encode_words(prepared.data, words, options.workers)
        else:
            ids, n_ids = self._run(data, offsets, prepared, options)
            pieces = prepared.pieces
            is_text = np.repeat(pieces.tokens < 0, n_ids)
            lengths = np.where(is_text, self.vocabulary.lengths[ids], np.repeat(pieces.stops - pieces.starts, n_ids))
        pieces = prepared.pieces
        owner = np.repeat(np.arange(len(n_ids)), n_ids)
        is_text = pieces.tokens[owner] < 0
        added = is_added[owner]
        margins = (lengths, lengths)
        if self.template.trim_offsets:
            leading, trailing = self._margins
            margins = leading[ids], trailing[ids]
        starts, stops = locate(prepared, data, offsets, n_ids, lengths, margins, self._spaces, self.template, unit)
        starts[added] = 0
        stops[added] = 0
        special = np.zeros(max(self.vocab_size, 1), np.uint8)
        special[list(self.special_ids.values())] = 1
        mask = np.where(is_text, 0, special[ids]).astype(np.uint8)
        sequence_ids = np.where(added, -1, 0).astype(np.int8)
        return FlatEncoding(ids, starts, stops, mask, sequence_ids, _document_offsets(pieces, n_ids, len(offsets) - 1))

    def _run(
        self, data: np.ndarray, offsets: np.ndarray, prepared: AlignedPieces, options: EncodeOptions
    ) -> tuple[np.ndarray, np.ndarray]:
        self._check_options(options)
        dropout = options.dropout
        if dropout is None or dropout.threshold == 0:
            return self._encoder.encode(prepared.data, prepared.pieces, options.workers)
        samples = texts_of(data, offsets) if options.samples is None else options.samples
        keys = dropout.keys(samples.to_pylist() if hasattr(samples, "to_pylist") else samples)
        if len(keys) != len(offsets) - 1:
            raise UsageError(f"{len(keys)} sample names for {len(offsets) - 1} texts", code="samples")
        encoder = DropoutEncoder(self.model, self.pre_tokenizer)
        return encoder.encode(prepared.data, prepared.pieces, keys, dropout.threshold, options.workers)

    @cached_property
    def _reads_as_it_is(self) -> bool:
        """Whether nothing comes between a text and its words: no normalizer, no step, no token that every text may name."""
        rewrites = self.normalizers or self.steps or isinstance(self.model, CharacterBPE)
        return not rewrites and all(token.special for token in self.added_tokens)

    def _check_options(self, options: EncodeOptions) -> None:
        if options.workers < 1:
            raise UsageError(f"workers is at least 1, not {options.workers}", code="workers")
        if options.dropout is not None and isinstance(self.model, CharacterBPE):
            raise UsageError(
                "dropout is for byte-level BPE; the base symbols of this tokenizer are characters", code="dropout-model"
            )

    @cached_property
    def _margins(self) -> tuple[np.ndarray, np.ndarray]:
        return space_margins(self.vocabulary)

    @cached_property
    def _spaces(self) -> CodePoints:
        return white_space(unicode_tables.load(self.pre_tokenizer.unicode_version))

    @cached_property
    def _encoder(self) -> Any:
        return self.model.encoder(self.pre_tokenizer)

    def _pieces(
        self, data: np.ndarray, offsets: np.ndarray, options: EncodeOptions, *, follow: bool
    ) -> tuple[AlignedPieces, np.ndarray]:
        """The texts in pieces, with what goes around them; and which pieces were put around."""
        if options.special_in_text not in ("ordinary", "error"):
            raise UsageError(
                f"unknown policy for specials in text: {options.special_in_text!r}",
                hint="ordinary or error",
                code="policy",
            )
        prepared = self.prepare(
            data,
            offsets,
            options.allowed_special,
            options.split_policy,
            follow=follow,
            refuse=options.special_in_text == "error",
        )
        pieces = prepared.pieces
        before, after = self._around(options.add_special_tokens, options.bos, options.eos)
        if not before and not after:
            return prepared, np.zeros(len(pieces.starts), np.bool_)
        n = len(offsets) - 1
        bounds = prepared.document_bounds(offsets)
        documents = np.arange(n)
        places = [(bounds[:-1], 0, token) for token in before] + [(bounds[1:], 2, token) for token in after]
        starts = np.concatenate([pieces.starts, *(at for at, _, _ in places)])
        stops = np.concatenate([pieces.stops, *(at for at, _, _ in places)])
        tokens = np.concatenate([pieces.tokens, *(np.full(n, token, np.int64) for _, _, token in places)])
        owners = np.concatenate([pieces.documents, *(documents for _ in places)])
        rank = np.concatenate([np.ones(len(pieces.starts), np.int64), *(np.full(n, k) for _, k, _ in places)])
        order = np.argsort(owners * 3 + rank, kind="stable")
        pieces = Pieces(starts[order], stops[order], tokens[order], owners[order])
        return replace(prepared, pieces=pieces), rank[order] != 1

    @cached_property
    def _preparer(self) -> Preparer:
        return Preparer(self.added_tokens, self.normalizers, self.steps, self.pre_tokenizer.unicode_version)

    def prepare(
        self,
        data: np.ndarray,
        offsets: np.ndarray,
        allowed_special: Iterable[str] | str = (),
        split_policy: str = NO_POLICY,
        *,
        follow: bool = False,
        refuse: bool = False,
    ) -> AlignedPieces:
        """The texts ``data[offsets[i]:offsets[i + 1]]``, cut by the policy, as the pieces in which words are found.

        ``follow`` and ``refuse``: see ``preparing.Preparer``.
        """
        if check_policy(split_policy) == NO_POLICY:
            pieces = whole_texts(offsets)
        else:
            pieces = cut_long_texts(data, offsets, *POLICIES[split_policy])
        allowed = self._allowed(allowed_special)
        return self._preparer.prepare(data, offsets, pieces, allowed, follow=follow, refuse=refuse)

    def normalize(self, text: str | bytes, allowed_special: Iterable[str] | str = ()) -> bytes:
        """What decoding the text's ids gives back, in bytes: the text itself unless this tokenizer rewrites text."""
        if isinstance(self.model, CharacterBPE):
            return self.decode_bytes(self.encode(text, allowed_special=allowed_special))
        data, offsets = _one_text(text)
        prepared = self.prepare(data, offsets, allowed_special)
        pieces = prepared.pieces
        parts = zip(pieces.starts.tolist(), pieces.stops.tolist(), pieces.tokens.tolist(), strict=True)
        return b"".join(
            self.token_bytes(token) if token >= 0 else prepared.data[start:stop].tobytes()
            for start, stop, token in parts
        )

    def _around(self, add_special_tokens: bool, bos: bool, eos: bool) -> tuple[list[int], list[int]]:
        before = list(self.template.prefix) if add_special_tokens else []
        after = list(self.template.suffix) if add_special_tokens else []
        for wanted, name, what in ((bos, self.bos_token, "bos"), (eos, self.eos_token, "eos")):
            if wanted and name is None:
                raise UsageError(
                    f"this tokenizer names no {what} token",
                    hint="its special tokens: " + (", ".join(map(repr, list(self.special_ids)[:20])) or "none"),
                    code=f"no-{what}",
                )
        if bos and self.bos_token is not None and before[:1] != [self.token_id(self.bos_token)]:
            before.insert(0, self.token_id(self.bos_token))
        if eos and self.eos_token is not None and after[-1:] != [self.token_id(self.eos_token)]:
            after.append(self.token_id(self.eos_token))
        return before, after

    def _allowed(self, names: Iterable[str] | str) -> frozenset[str]:
        if isinstance(names, str):
            if names != "all":
                raise UsageError(
                    f'allowed_special is a list of names or "all", not {names!r}',
                    hint=f"write allowed_special=[{names!r}]",
                    code="allowed-special",
                )
            return frozenset(self.special_ids)
        allowed = frozenset(names)
        unknown = sorted(allowed - self.special_ids.keys())
        if unknown:
            raise UsageError(
                f"not a special token of this tokenizer: {', '.join(map(repr, unknown))}",
                hint="its special tokens: " + (", ".join(map(repr, list(self.special_ids)[:20])) or "none"),
                code="unknown-special",
            )
        return allowed

    # -- decoding

    def decode_bytes(self, ids: Any) -> bytes:
        """The exact bytes of ids (a sequence or an integer array); DataError for an id that stands for nothing.

        Where white space is dropped a space stands between words, and none behind the last one.
        """
        if not self.pre_tokenizer.drops_space:
            return join_tokens(self.vocabulary, ids)
        ids = ids if isinstance(ids, np.ndarray) else list(ids)
        joined = join_tokens(self.vocabulary, ids)
        ends_word = self.model.ends_word if isinstance(self.model, CharacterBPE) else ()
        return joined[:-1] if len(ids) and int(ids[-1]) < len(ends_word) and ends_word[int(ids[-1])] else joined

    def decode(self, ids: Any, errors: str = "replace") -> str:
        """The text of ids. Bytes that are not UTF-8 become U+FFFD, or with ``errors="strict"`` raise DataError."""
        if errors not in ("replace", "strict"):
            raise UsageError(f"unknown error policy {errors!r}", hint="replace or strict", code="policy")
        data = self.decode_bytes(ids)
        try:
            return data.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            raise DataError(
                f"the ids decode to bytes that are not UTF-8: {error.reason} at byte {error.start}",
                hint='use decode_bytes, or errors="replace"',
                code="invalid-utf8",
                offset=error.start,
            ) from None

    # -- identity

    @cached_property
    def semantic_hash(self) -> str:
        """Digest of what this tokenizer does, wherever and however it is stored."""
        from tokctl.artifacts.framed_hash import framed_sha256
        from tokctl.tokenizer.formats.native import semantic_payload

        return framed_sha256("tokenizer-semantic-v1", semantic_payload(self))

    def save(self, path: str | Path) -> None:
        """Write the native directory ``path`` (``tokctl.json`` and its self-test), replacing those two files."""
        from tokctl.tokenizer.formats.native import save

        save(self, Path(path))


def _one_text(text: str | bytes) -> tuple[np.ndarray, np.ndarray]:
    data = text_view(text)
    return data, np.array([0, len(data)], np.int64)


def _one_sample(sample: str | bytes | None) -> list[str | bytes] | None:
    return None if sample is None else [sample]


def _document_offsets(pieces: Pieces, n_ids: np.ndarray, n_documents: int) -> np.ndarray:
    """``int64[m + 1]`` from the number of ids of each piece."""
    totals = np.concatenate([[0], np.cumsum(n_ids)]).astype(np.int64)
    return totals[np.searchsorted(pieces.documents, np.arange(n_documents + 1))]

"""tiktoken's files: ``NAME.tiktoken`` (base64 of a token's bytes, space, rank, a line each) and ``NAME.json`` beside it.

A rank is a token id. tiktoken looks a whole word up first and otherwise merges the two neighbours whose joined bytes
have the lowest rank, the leftmost of several; which two tokens they are does not matter. The pattern and the special
tokens are not in the ranks file: ``NAME.json`` holds ``{"pattern": "...", "specials": {"name": id}}``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokctl.artifacts.durable import write_bytes
from tokctl.errors import ArtifactError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats.byte_level import MAX_ID
from tokctl.tokenizer.formats.disjoint import check_disjoint
from tokctl.tokenizer.formats.encodings import ENCODINGS
from tokctl.tokenizer.formats.json_reader import Reader, read_file, read_json
from tokctl.tokenizer.formats.verification import compare_with_consumer
from tokctl.tokenizer.models.bpe import BPE, unique_tokens
from tokctl.tokenizer.models.bpe_characters import CharacterBPE
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.split import WHOLE_TEXT, PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import TOKEN, Vocabulary

SUFFIX = ".tiktoken"
_GAP = r"[\s\S]"


def export(tokenizer: Tokenizer, directory: Path, name: str = "tokenizer") -> list[Path]:
    """Write ``name.tiktoken`` and ``name.json`` into ``directory`` (made if missing) and return their paths.

    Raises ArtifactError for what the format can't carry: normalizers and pre-tokenizer steps, a sequence of patterns, an
    alphabet without all 256 bytes, merges whose order is not that of their tokens' ids, a token that its own bytes do not
    give (tiktoken would look it up whole), and added tokens with flags.
    """
    rewriting = [part.type for part in (*tokenizer.normalizers, *tokenizer.steps)]
    if rewriting:
        raise _not_expressible(f"this tokenizer does more to a text than to split it ({', '.join(rewriting)})")
    model = tokenizer.model
    if isinstance(model, CharacterBPE):
        raise _not_expressible("its base tokens are characters, and tiktoken's are bytes")
    pattern = pattern_for_tiktoken(tokenizer.pre_tokenizer)
    if not model.is_byte_complete:
        raise _not_expressible(
            f"the alphabet has {int((model.byte_ids >= 0).sum())} of the 256 bytes, and tiktoken crashes on the others"
        )
    for token in tokenizer.added_tokens:
        if token.single_word or token.lstrip or token.rstrip or not token.special:
            raise _not_expressible(f"the added token {token.content!r} is not special, or has flags")
    if model.merged is not None and (model.merged[1:] <= model.merged[:-1]).any():
        raise _not_expressible("the merges are not in the order of their tokens' ids, and tiktoken merges by id")
    if model.form == "merges":
        hidden = [i for i in model.unreachable if i not in model.control_ids]
        if hidden:
            raise _not_expressible(
                f"{len(hidden)} tokens are not what merging their own bytes gives (first: {hidden[0]}, "
                f"{model.vocabulary.token(hidden[0])!r}), but tiktoken would find them whole"
            )
    elif not model.whole_words:
        raise _not_expressible("this tokenizer does not look whole words up, and tiktoken always does")
    lines = [
        base64.b64encode(token) + b" " + str(token_id).encode() + b"\n"
        for token_id, token in enumerate(model.vocabulary.tokens())
        if token is not None and model.vocabulary.kinds[token_id] == TOKEN and token_id not in model.control_ids
    ]
    sibling = {
        "name": name,
        "pattern": pattern,
        "specials": {token.content: token.id for token in tokenizer.added_tokens},
        "bos": tokenizer.bos_token,
        "eos": tokenizer.eos_token,
    }
    directory.mkdir(parents=True, exist_ok=True)
    ranks_path, sibling_path = directory / f"{name}{SUFFIX}", directory / f"{name}.json"
    write_bytes(ranks_path, b"".join(lines))
    write_bytes(sibling_path, (json.dumps(sibling, ensure_ascii=False, indent=2) + "\n").encode())
    return [ranks_path, sibling_path]


def load(
    path: Path, *, pattern: str | None = None, specials: Sequence[str] | Mapping[str, int] | None = None
) -> Tokenizer:
    """Read a ranks file; ``pattern`` and ``specials`` (names after the ranks, or name -> id) win over ``NAME.json``.

    ``pattern`` may also be the name of one of ``ENCODINGS``, whose specials are taken unless others are given. A file that
    bears such a name, has as many ranks, and has no ``NAME.json`` beside it needs no pattern.
    """
    ranks = read_ranks(path)
    sibling_path = path.with_suffix(".json")
    bos = eos = None
    notices: list[str] = []
    beside = read_json(sibling_path) if sibling_path.exists() and (pattern is None or specials is None) else None
    if pattern is None and beside is None:
        named = ENCODINGS.get(path.stem)
        if named is not None and named.n_ranks == len(ranks):
            pattern = path.stem
            notices.append(f"the pattern and the special tokens are those of {path.stem}, after the file's name")
    if pattern in ENCODINGS:
        encoding = ENCODINGS[pattern]
        pattern = encoding.pattern
        specials = encoding.specials if specials is None else specials
    # A .model file may have tokenizer.json beside it, which is another library's.
    if (
        (pattern is None or specials is None)
        and isinstance(beside, dict)
        and ("pattern" in beside or path.suffix == SUFFIX)
    ):
        sibling = Reader(beside, sibling_path)
        if pattern is None:
            pattern = sibling.take("pattern", str)
        if specials is None:
            specials = sibling.take("specials", dict, default={})
            bos = sibling.take("bos", (str, type(None)), default=None)
            eos = sibling.take("eos", (str, type(None)), default=None)
    if pattern is None:
        raise ArtifactError(
            f"{path.name} holds ranks only, and there is no {sibling_path.name} with the pattern",
            hint=f"name the pattern: one of {', '.join(NAMED)}, an encoding ({', '.join(ENCODINGS)}), or a regular "
            "expression",
            code="no-pattern",
            file=str(path),
        )
    try:
        return from_ranks(ranks, pattern, specials or {}, bos=bos, eos=eos, notices=notices)
    except ArtifactError as error:
        raise ArtifactError(error.message, hint=error.hint, code=error.code, file=str(path)) from None


def from_ranks(
    ranks: Mapping[bytes, int],
    pattern: str,
    specials: Sequence[str] | Mapping[str, int],
    *,
    bos: str | None = None,
    eos: str | None = None,
    notices: Sequence[str] = (),
) -> Tokenizer:
    """The tokenizer of tiktoken's parts; ``specials`` as names get the ids after the highest rank."""
    tokens: list[bytes | None] = [None] * (max(ranks.values(), default=-1) + 1)
    for token, rank in ranks.items():
        tokens[rank] = token
    if not isinstance(specials, Mapping):
        specials = {name: len(tokens) + k for k, name in enumerate(specials)}
    for name, token_id in specials.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_ID:
            raise ArtifactError(f"the special token {name!r} has the id {token_id!r}", code="bad-id")
    vocabulary = Vocabulary.from_tokens(tokens)
    unique_tokens(vocabulary)
    tokenizer = Tokenizer(
        PreTokenizer.from_pattern(_name_of(pattern)),
        BPE(vocabulary, None, None, whole_words=True),
        tuple(AddedToken(token_id, name) for name, token_id in specials.items()),
        bos,
        eos,
        notices=tuple(notices),
    )
    if not tokenizer.model.is_byte_complete:
        missing = [byte for byte in range(256) if tokenizer.model.byte_ids[byte] < 0]
        raise ArtifactError(
            f"the ranks lack {len(missing)} of the 256 bytes, first 0x{missing[0]:02X}", code="no-bytes"
        )
    check_disjoint(tokenizer)
    return tokenizer


def is_ranks(path: Path) -> bool:
    """Whether a file begins like a ranks file (some are called ``.model``, as SentencePiece's models are)."""
    with path.open("rb") as stream:
        return re.fullmatch(rb"[A-Za-z0-9+/]+=* \d+\r?", stream.read(1 << 12).split(b"\n")[0]) is not None


def read_ranks(path: Path) -> dict[bytes, int]:
    """Token bytes -> rank; ArtifactError names the line of anything else, of a repeated token and of a repeated rank."""
    ranks: dict[bytes, int] = {}
    seen: dict[int, int] = {}
    for row, line in enumerate(read_file(path).splitlines()):
        if not line:
            continue
        fields = line.split()
        try:
            if len(fields) != 2:
                raise ValueError("expected a token in base64 and its rank")
            token, rank = base64.b64decode(fields[0], validate=True), int(fields[1])
            if not token:
                raise ValueError("the token is empty")
            if not 0 <= rank < MAX_ID:
                raise ValueError(f"the rank {rank} is out of range")
            if token in ranks:
                raise ValueError(f"the token {token!r} comes twice")
            if rank in seen:
                raise ValueError(f"the rank {rank} is also on line {seen[rank] + 1}")
        except (ValueError, binascii.Error) as error:
            raise ArtifactError(
                f"line {row + 1} is no rank: {error}", code="bad-ranks", file=str(path), row=row
            ) from None
        ranks[token] = rank
        seen[rank] = row
    if not ranks:
        raise ArtifactError("the file holds no ranks", code="bad-ranks", file=str(path))
    return ranks


def pattern_for_tiktoken(pre_tokenizer: PreTokenizer) -> str:
    """The one expression that makes tiktoken, which drops what nothing matches, cut the same words.

    The named patterns match everything already. Another expression gets a second choice: the text up to its next match.
    """
    patterns = pre_tokenizer.patterns
    if len(patterns) > 1:
        raise _not_expressible(
            f"the pre-tokenizer {pre_tokenizer.name!r} applies {len(patterns)} patterns in turn, and tiktoken has one",
            "export to Hugging Face, or choose a pattern that is one expression",
        )
    if not patterns:
        return WHOLE_TEXT
    if pre_tokenizer.name != "regex" or patterns[0].endswith(f"{_GAP})+"):
        return patterns[0]
    return f"{patterns[0]}|(?:(?!{patterns[0]}){_GAP})+"


def verify_tiktoken(tokenizer: Tokenizer, path: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Encode ``texts`` and every token of the vocabulary through tiktoken and compare; as ``verify_huggingface``."""

    def load() -> tuple[str, Any, Any]:
        import tiktoken

        sibling_path = path.with_suffix(".json")
        sibling = Reader(read_json(sibling_path), sibling_path)
        theirs = tiktoken.Encoding(
            path.stem,
            pat_str=sibling.take("pattern", str),
            mergeable_ranks=read_ranks(path),
            special_tokens=sibling.take("specials", dict),
        )

        def encode(batch: list[str]) -> list[list[int]]:
            return [theirs.encode(text, allowed_special="all") for text in batch]

        return tiktoken.__version__, encode, theirs.decode

    return compare_with_consumer("tiktoken", load, tokenizer, texts)


def _name_of(pattern: str) -> str:
    return "none" if pattern == WHOLE_TEXT else pattern


def _not_expressible(what: str, hint: str | None = None) -> ArtifactError:
    return ArtifactError(
        f"tiktoken's format can't express it: {what}",
        hint=hint or "export huggingface can express more",
        code="not-expressible",
    )

"""Reading ``tekken.json``, Mistral's byte-level vocabularies.

The file ranks more tokens than the tokenizer has: those below ``default_vocab_size - default_num_special_tokens`` count.
Ids are ranks after the special tokens, whose ids are their own ranks. Merging is tiktoken's: a whole word first, then the
two neighbours whose joined bytes rank lowest. mistral-common, the file's own library, never makes a special token of
text, whether the file calls it a control token or not; here all of them are control tokens, which text becomes only
where a caller allows the name.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.formats.byte_level import MAX_ID
from tokctl.tokenizer.formats.json_reader import Reader, read_json
from tokctl.tokenizer.formats.tiktoken import from_ranks
from tokctl.tokenizer.tokenizer import Tokenizer

FILE_NAME = "tekken.json"
BOS, EOS = "<s>", "</s>"

# The special tokens of files of versions 1 to 7, which do not list them.
_UNLISTED = (
    *("<unk>", BOS, EOS, "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"),
    *("[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
_VERSIONS_THAT_LIST_NONE = ("v1", "v2", "v3", "v7")


def is_tekken(value: Any) -> bool:
    """Whether a JSON value is such a file."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("vocab"), list)
        and isinstance(value.get("config"), dict)
        and "default_num_special_tokens" in value["config"]
    )


def load(path: Path, value: Any = None) -> Tokenizer:
    """Read the file; ArtifactError names what is wrong with it and where. ``value`` is what it holds, if known."""
    reader = Reader(read_json(path) if value is None else value, path)
    config = reader.object("config")
    pattern = config.take("pattern", str)
    size, n_specials = config.take("default_vocab_size", int), config.take("default_num_special_tokens", int)
    if not 0 <= n_specials <= size < MAX_ID:
        raise reader.error(f"$.config asks for {size} tokens, {n_specials} of them special", code="vocabulary-size")
    entries = reader.take("vocab", list)
    n_tokens = size - n_specials
    if len(entries) < n_tokens:
        raise reader.error(
            f"$.vocab has {len(entries)} entries, but $.config asks for {n_tokens} that are not special",
            code="vocabulary-size",
        )
    ranks: dict[bytes, int] = {}
    for i, entry in enumerate(entries[:n_tokens]):
        token = _token(Reader(entry, path, f"$.vocab[{i}]"), i)
        if token in ranks:
            raise reader.error(f"$.vocab[{i}] is {token!r}, as is entry {ranks[token] - n_specials}", code="bad-ranks")
        ranks[token] = i + n_specials
    notices: list[str] = []
    specials = _specials(reader, config, n_specials, notices)
    if len(entries) > n_tokens:
        notices.append(f"the file ranks {len(entries)} tokens; the first {n_tokens} count, as in mistral-common")
    try:
        return from_ranks(
            ranks,
            pattern,
            specials,
            bos=BOS if BOS in specials else None,
            eos=EOS if EOS in specials else None,
            notices=notices,
        )
    except (ArtifactError, UsageError) as error:
        raise ArtifactError(error.message, hint=error.hint, code=error.code, file=str(path)) from None


def _token(entry: Reader, i: int) -> bytes:
    rank = entry.take("rank", int)
    if rank != i:
        raise entry.error(f"{entry.where}.rank is {rank}, not {i}", code="bad-ranks")
    try:
        token = base64.b64decode(entry.take("token_bytes", str), validate=True)
    except (ValueError, binascii.Error) as error:
        raise entry.error(f"{entry.where}.token_bytes is not base64: {error}", code="bad-ranks") from None
    if not token:
        raise entry.error(f"{entry.where}.token_bytes is empty", code="empty-token")
    if i < 256 and token != bytes([i]):
        raise entry.error(f"{entry.where} is {token!r}, not the byte {i}", code="bad-ranks")
    return token


def _specials(reader: Reader, config: Reader, n_specials: int, notices: list[str]) -> dict[str, int]:
    """Name -> id; places that no name is given for are called ``<SPECIAL_i>``, as in mistral-common."""
    listed: list[Any] | None = reader.take("special_tokens", (list, type(None)), default=None)
    version = config.take("version", str, default="")
    if listed is None:
        if version not in _VERSIONS_THAT_LIST_NONE:
            raise reader.error(
                f"$.special_tokens is missing in a file of version {version!r}",
                hint=f"files of {', '.join(_VERSIONS_THAT_LIST_NONE)} need none",
                code="missing-member",
            )
        listed = [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(_UNLISTED)]
    names: dict[str, int] = {}
    not_control = []
    for i, value in enumerate(listed):
        entry = Reader(value, reader.path, f"$.special_tokens[{i}]")
        name, rank = entry.take("token_str", str), entry.take("rank", int)
        if not 0 <= rank < n_specials or rank in names.values():
            raise entry.error(f"{entry.where}.rank is {rank}, which is taken or out of range", code="bad-id")
        if name in names:
            raise entry.error(f"{entry.where} repeats the name {name!r}", code="added-token")
        names[name] = rank
        if not entry.take("is_control", bool, default=True):
            not_control.append(name)
    if not_control:
        notices.append(
            f"special tokens that the file does not call control tokens: {', '.join(map(repr, not_control))}; "
            "text doesn't become them either"
        )
    taken = set(names.values())
    for rank in range(n_specials):
        if rank not in taken:
            filler = f"<SPECIAL_{rank}>"
            if filler in names:
                raise reader.error(f"the special token {filler!r} has the rank {names[filler]}", code="added-token")
            names[filler] = rank
    return names

"""Reading byte-level BPE from ``tokenizer.json``, or from ``vocab.json`` and ``merges.txt``.

What a file asks for is followed or refused by name; only what can't change an id or a text is passed over, with a
notice. Ids are those that the tokenizers library would give: it finds an added token's id by its spelling and numbers
the ones it doesn't find after the vocabulary, whatever the file says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.byte_order import CHAR_TO_BYTE, unspell_bytes
from tokctl.tokenizer.formats.byte_level import read_model
from tokctl.tokenizer.formats.disjoint import check_disjoint
from tokctl.tokenizer.formats.huggingface import CONFIG_NAME, FILE_NAME
from tokctl.tokenizer.formats.huggingface_normalizer import read_normalizers
from tokctl.tokenizer.formats.huggingface_parts import flatten, kind_of, unsupported
from tokctl.tokenizer.formats.huggingface_pre_tokenizer import read_pre_tokenizer
from tokctl.tokenizer.formats.json_reader import Reader, read_file, read_json
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.pre_tokenizers.split_by import SplitBy
from tokctl.tokenizer.template import Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer

_NONE = (type(None),)
_WORD_END = "</w>"


def load(path: Path, value: Any = None) -> Tokenizer:
    """Read ``tokenizer.json`` (or its directory); ``tokenizer_config.json`` beside it names bos and eos.

    ``value`` is what the file holds, where the caller has it.
    """
    if path.is_dir():
        path = path / FILE_NAME
    reader = Reader(read_json(path) if value is None else value, path)
    notices: list[str] = []
    try:
        model_json = reader.object("model")
        vocab = _vocab(model_json)  # first of all: what there is of a Unigram file to refuse is its model
        normalizers = read_normalizers(reader.value.get("normalizer"))
        pre_tokenizer, steps = read_pre_tokenizer(reader.value.get("pre_tokenizer"))
        slow = [pre_tokenizer.notice, *(step.notice for step in steps if isinstance(step, SplitBy))]
        notices += [notice for notice in slow if notice is not None]
        tokens = [Reader(value, path, f"$.added_tokens[{i}]") for i, value in enumerate(_list(reader, "added_tokens"))]
        added = [_added(token) for token in tokens]
        _refuse_model_options(model_json, vocab)
        model = read_model(
            vocab,
            _merges(model_json),
            whole_words=model_json.take("ignore_merges", bool, default=False),
            added={token.content: token.special for token in added},
        )
        _check_decoder(reader, notices)
        for name in ("padding", "truncation"):
            if reader.value.get(name) is not None:
                notices.append(f"the file's {name} is not followed: every text is encoded whole")
        numbered = _number(added, vocab, notices)
        for token in numbered:
            if all(char in CHAR_TO_BYTE for char in token.content) and unspell_bytes(token.content) != token.spelling:
                notices.append(
                    f"the added token {token.content!r} is decoded as it is written; tokenizers would read it as "
                    f"spelled bytes, {unspell_bytes(token.content)!r}"
                )
        template = _template(reader)
        bos, eos = _bos_eos(path.parent / CONFIG_NAME, template, numbered)
        tokenizer = Tokenizer(
            pre_tokenizer, model, tuple(numbered), bos, eos, template, tuple(notices), normalizers, steps
        )
        check_disjoint(tokenizer)
    except ArtifactError as error:
        if error.where.file is None:
            raise ArtifactError(error.message, hint=error.hint, code=error.code, file=str(path)) from None
        raise
    except UsageError as error:  # a pattern that isn't one
        raise ArtifactError(
            f"$.pre_tokenizer: {error.message}", hint=error.hint, code=error.code, file=str(path)
        ) from None
    return tokenizer


def load_vocab_and_merges(
    vocab_path: Path,
    merges_path: Path,
    *,
    pattern: str | None = None,
    specials: Sequence[str] | Mapping[str, int] | None = None,
) -> Tokenizer:
    """Read GPT-2's two files (also named ``encoder.json`` and ``vocab.bpe``); the pattern is gpt2 unless given.

    Tokens of the vocabulary that are neither a byte nor made by a merge are control tokens: text can't become them.
    ``specials`` names further ones, by spelling (numbered after the vocabulary) or as spelling -> id.
    """
    value = read_json(vocab_path)
    if not isinstance(value, dict):
        raise ArtifactError(
            f"the vocabulary is {kind_of(value)}, not an object", code="wrong-shape", file=str(vocab_path)
        )
    vocab = _checked_vocab(value, vocab_path)
    merges = []
    for row, line in enumerate(_text(merges_path).split("\n")):
        if not line or (row == 0 and line.startswith("#version")):
            continue
        fields = line.rstrip("\r").split(" ")
        if len(fields) != 2 or not all(fields):
            raise ArtifactError(
                f"line {row + 1} is no merge: {line!r}", code="bad-merges", file=str(merges_path), row=row
            )
        merges.append((fields[0], fields[1]))
    made = {left + right for left, right in merges}
    control = {s: i for s, i in vocab.items() if s not in made and not (len(s) == 1 and s in CHAR_TO_BYTE)}
    sides = {side for pair in merges for side in pair}
    if any(len(name) == 1 + len(_WORD_END) and name.endswith(_WORD_END) and name in sides for name in control):
        raise ArtifactError(
            f"the tokens that end a word are spelled with {_WORD_END!r}: this is not byte-level BPE of GPT-2's kind",
            hint="tokctl does not read vocabularies with an end-of-word suffix (CLIP's)",
            code="unsupported",
            file=str(vocab_path),
        )
    if specials is not None:
        size = max(vocab.values(), default=-1) + 1
        new = [name for name in specials if name not in vocab]
        named = specials if isinstance(specials, Mapping) else {name: size + k for k, name in enumerate(new)}
        for name in specials:
            control[name] = vocab.get(name, named.get(name, -1))
    try:
        model = read_model(vocab, merges, whole_words=False, added=dict.fromkeys(control, True))
        added = tuple(AddedToken(token_id, name) for name, token_id in control.items())
        notices = (
            (f"control tokens by their place in the vocabulary: {', '.join(map(repr, control))}",) if control else ()
        )
        tokenizer = Tokenizer(PreTokenizer.from_pattern(pattern or "gpt2"), model, added, notices=notices)
        check_disjoint(tokenizer)
    except ArtifactError as error:
        raise ArtifactError(error.message, hint=error.hint, code=error.code, file=str(vocab_path)) from None
    return tokenizer


def _list(reader: Reader, key: str) -> list[Any]:
    return reader.take(key, (list, *_NONE), default=[]) or []


def _text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArtifactError(
            f"not UTF-8 at byte {error.start}", code="bad-merges", file=str(path), offset=error.start
        ) from None


def _vocab(model: Reader) -> dict[str, int]:
    kind = model.take("type", str, default="BPE" if "merges" in model.value else "unknown")
    if kind != "BPE":
        raise unsupported("the model", "$.model", kind)
    return _checked_vocab(model.take("vocab", dict), model.path)


def _checked_vocab(value: dict[str, Any], path: Path) -> dict[str, int]:
    for spelling, token_id in value.items():
        if type(token_id) is not int:
            raise ArtifactError(
                f"the token {spelling!r} has {kind_of(token_id)} for an id", code="wrong-shape", file=str(path)
            )
    return value


def _refuse_model_options(model: Reader, vocab: dict[str, int]) -> None:
    """Options that would change an id. With all 256 bytes in the vocabulary nothing is unknown to the model."""
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.value.get(option) not in (None, "", 0, 0.0):
            raise unsupported("the model", "$.model", f"BPE with {option} {model.value[option]!r}")
    if all(char in vocab for char in CHAR_TO_BYTE):
        return
    for option in ("unk_token", "byte_fallback"):
        if model.value.get(option):
            raise unsupported(
                "the model", "$.model", f"BPE with {option} {model.value[option]!r} and without all 256 bytes"
            )


def _merges(model: Reader) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for rank, merge in enumerate(model.take("merges", list)):
        match merge.split(" ") if isinstance(merge, str) else merge:
            case [str(left), str(right)] if left and right:
                merges.append((left, right))
            case _:
                raise model.error(f"$.model.merges[{rank}] is no pair of tokens: {merge!r}", code="bad-merges")
    return merges


def _check_decoder(reader: Reader, notices: list[str]) -> None:
    """ByteLevel decodes exactly. Without a decoder tokenizers would join the spelled tokens by spaces."""
    found = flatten(reader.value.get("decoder"), "$.decoder", "decoders")
    kinds = [kind_of(step) for step, _ in found]
    if not kinds:
        notices.append("the file names no decoder: tokens are decoded to the bytes that they spell")
    elif kinds not in (["ByteLevel"], ["ByteLevel", "Fuse"]):
        raise unsupported("the decoder", "$.decoder", ", ".join(kinds))


def _added(reader: Reader) -> AddedToken:
    flags = {name: reader.take(name, bool, default=False) for name in ("single_word", "lstrip", "rstrip", "special")}
    normalized = reader.take("normalized", bool, default=not flags["special"])
    content = reader.take("content", str)
    try:
        content.encode()
    except UnicodeEncodeError:
        raise reader.error(f"{reader.where}.content holds a lone surrogate", code="bad-token") from None
    if not content:
        raise reader.error(f"{reader.where}.content is empty", code="added-token")
    return AddedToken(reader.take("id", int), content, normalized=normalized, **flags)


def _number(added: list[AddedToken], vocab: dict[str, int], notices: list[str]) -> list[AddedToken]:
    """The added tokens with the ids that tokenizers gives them."""
    numbered: dict[str, AddedToken] = {}
    highest = -1
    for token in added:
        if token.content in numbered:
            continue
        token_id = vocab.get(token.content)
        if token_id is None:
            token_id = highest + 1 if highest >= len(vocab) or not vocab else len(vocab)
        if token_id != token.id:
            notices.append(
                f"the added token {token.content!r} has id {token_id}, as in tokenizers, although the file says {token.id}"
            )
        highest = max(highest, token_id)
        numbered[token.content] = replace(token, id=token_id)
    return list(numbered.values())


def _template(reader: Reader) -> Template:
    """The post-processor, or the sequence of them, as one template."""
    template = Template()
    value = reader.value.get("post_processor")
    has_places = False
    for step, _ in flatten(value, "$.post_processor", "processors"):
        kind = kind_of(step)
        if kind in ("TemplateProcessing", "RobertaProcessing", "BertProcessing"):
            if has_places:
                raise unsupported("the post-processor", "$.post_processor", "two templates in sequence")
            has_places = True
        if kind == "ByteLevel":
            template = _with_trim(template, step)
        elif kind == "TemplateProcessing":
            names = _template_names(step)
            single, pair = _places(step.get("single"), names), _places(step.get("pair"), names)
            template = replace(template, single=single, pair=pair)
        elif kind in ("RobertaProcessing", "BertProcessing"):
            template = _pair_of_ends(template, step, kind)
        else:
            raise unsupported("the post-processor", "$.post_processor", kind)
    if not template.is_valid():
        raise unsupported("the post-processor", "$.post_processor", "a template that does not hold each sequence once")
    return template


def _with_trim(template: Template, step: dict[str, Any]) -> Template:
    if not step.get("trim_offsets", True):
        return template
    return replace(template, trim_offsets=True, trim_keeps_first=bool(step.get("add_prefix_space", True)))


def _pair_of_ends(template: Template, step: dict[str, Any], kind: str) -> Template:
    try:
        cls, sep = int(step["cls"][1]), int(step["sep"][1])
    except (KeyError, IndexError, TypeError, ValueError):
        raise unsupported("the post-processor", "$.post_processor", f"{kind} without cls and sep") from None
    first = (Piece(cls), Piece("A"), Piece(sep))
    if kind == "RobertaProcessing":
        return _with_trim(replace(template, single=first, pair=(*first, Piece(sep), Piece("B"), Piece(sep))), step)
    return replace(template, single=first, pair=(*first, Piece("B", 1), Piece(sep, 1)))


def _template_names(step: dict[str, Any]) -> dict[str, list[int]]:
    names = step.get("special_tokens") or {}
    try:
        return {str(name): [int(i) for i in value["ids"]] for name, value in names.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise unsupported(
            "the post-processor", "$.post_processor", "TemplateProcessing with unreadable special_tokens"
        ) from None


def _places(value: Any, names: dict[str, list[int]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for place in value if isinstance(value, list) else []:
        try:
            if "Sequence" in place:
                pieces.append(Piece(str(place["Sequence"]["id"]), int(place["Sequence"]["type_id"])))
            else:
                type_id = int(place["SpecialToken"]["type_id"])
                pieces += [Piece(i, type_id) for i in names[place["SpecialToken"]["id"]]]
        except (KeyError, TypeError, ValueError):
            raise unsupported(
                "the post-processor", "$.post_processor", f"TemplateProcessing with the place {place!r}"
            ) from None
    return tuple(pieces)


def _bos_eos(config: Path, template: Template, added: list[AddedToken]) -> tuple[str | None, str | None]:
    """The names in ``tokenizer_config.json``; without that file, what the template puts first and last."""
    names = {token.content for token in added}
    by_id = {token.id: token.content for token in added}
    if config.is_file():
        value = read_json(config)
        found = []
        for key in ("bos_token", "eos_token"):
            name = value.get(key) if isinstance(value, dict) else None
            name = name.get("content") if isinstance(name, dict) else name
            found.append(name if name in names else None)
        return found[0], found[1]
    bos = by_id.get(template.prefix[0]) if template.prefix else None
    eos = by_id.get(template.suffix[-1]) if template.suffix else None
    return bos, eos

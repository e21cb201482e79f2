"""The native format: a directory with ``tokctl.json``, canonical JSON, and ``self-test.json`` beside it.

``tokctl.json``::

    {"format": "tokctl-tokenizer", "version": 1,
     "unicode_version": "16.0.0",
     "normalizer": null | [{"type": "nfc", ...}, ...],    Normalizer.to_json()
     "steps": [{"type": "split", ...}, ...],      Step.to_json(); absent where there is none
     "pre_tokenizer": {...},                      PreTokenizer.to_json()
     "model": {"type": "bpe", "form": "merges" | "ranks", "whole_words": false,
               "tokens": ["21", "2220", null, ...],   id -> bytes in hexadecimal; null: not the model's
               "literals": [ids],                 of these, those that are only ever decoded
               "merges": [[left id, right id], ...], null for the form "ranks"
               only where the base tokens are characters:
               "unit": "character", "end_of_word": marker | null, "end_of_word_as": "suffix" | "symbol",
               "unknown_id": id | null},
     "added_tokens": [{"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}, ...],
     "unused_ids": [ids],
     "bos": name | null, "eos": name | null,
     "post_processor": {"single": [...], "pair": [...], "trim_offsets", "trim_keeps_first"}}

A template's place is ``{"sequence": "A"}`` or ``{"id": 5}``, each with ``"type_id"``.

``self-test.json`` holds texts in hexadecimal, their ids, what these decode to where it is another text, and the semantic
hash they belong to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tokctl.artifacts.canonical import canonical_json
from tokctl.artifacts.durable import write_bytes
from tokctl.errors import ArtifactError, CheckFailed, TokctlError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats.disjoint import check_disjoint
from tokctl.tokenizer.formats.json_reader import Reader, read_json
from tokctl.tokenizer.models.bpe import BPE, unique_tokens
from tokctl.tokenizer.models.bpe_characters import CharacterBPE, EndOfWord
from tokctl.tokenizer.normalizers import from_json as normalizer_from_json
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.pre_tokenizers.steps import from_json as step_from_json
from tokctl.tokenizer.template import Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import LITERAL, Vocabulary

FILE_NAME = "tokctl.json"
SELF_TEST_NAME = "self-test.json"
FORMAT = "tokctl-tokenizer"
VERSION = 1

SELF_TEST_TEXTS: tuple[bytes, ...] = (
    b"",
    b"Hello, world!",
    "The  quick\tbrown fox\r\n\r\njumps over 1234567 lazy dogs. It's 25 °C; we'LL see!\n".encode(),
    "Straße, naïve café, Ελληνικά, русский текст, עברית, العربية, हिन्दी, ไทย".encode(),
    "漢字とかな、한국어 문장。中文句子，没有空格".encode(),
    "👩🏽‍💻 e\u0301 \u00a0 \u3000€".encode(),
    b"for (int i = 0; i < n; ++i) { x[i] += y[i] * 0x1F; }\n\t// done\n",
    b"\x00\xff\xe2\x82 broken \xc3",
    b" " * 17 + b"a" * 33,
)
"""What the self-test encodes: white space, digits, contractions, scripts, code, bytes that are not UTF-8."""


def to_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """The tokenizer as a canonical-JSON value."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "unicode_version": tokenizer.pre_tokenizer.unicode_version,
        **semantic_payload(tokenizer),
        "unused_ids": tokenizer.unused_ids,
    }


def semantic_payload(tokenizer: Tokenizer) -> dict[str, Any]:
    """What decides the tokenizer's behaviour, and nothing else: no names, no file format, no path."""
    steps = {"steps": [step.to_json() for step in tokenizer.steps]} if tokenizer.steps else {}
    return {
        "normalizer": [normalizer.to_json() for normalizer in tokenizer.normalizers] or None,
        **steps,
        "pre_tokenizer": tokenizer.pre_tokenizer.to_json(),
        "model": _model_json(tokenizer.model),
        "added_tokens": [_added_json(token) for token in tokenizer.added_tokens],
        "bos": tokenizer.bos_token,
        "eos": tokenizer.eos_token,
        "post_processor": _template_json(tokenizer.template),
    }


def save(tokenizer: Tokenizer, directory: Path) -> None:
    """Write both files into ``directory``, which is made if missing; each is replaced atomically."""
    if directory.exists() and not directory.is_dir():
        raise ArtifactError(f"{directory} is a file; a tokenizer is saved as a directory", code="not-a-directory")
    body = canonical_json(to_json(tokenizer))
    checks = canonical_json(self_test(tokenizer))
    directory.mkdir(parents=True, exist_ok=True)
    write_bytes(directory / SELF_TEST_NAME, checks)
    write_bytes(directory / FILE_NAME, body)


def load(path: Path, value: Any = None) -> Tokenizer:
    """Read ``tokctl.json`` (or its directory); ArtifactError for anything that is not exactly such a file.

    ``value`` is what the file holds, where the caller has it.
    """
    if path.is_dir():
        path = path / FILE_NAME
    reader = Reader(read_json(path) if value is None else value, path)
    if reader.take("format", str) != FORMAT:
        raise reader.error(f"the format is {reader.value['format']!r}, not {FORMAT!r}", code="not-a-tokenizer")
    version = reader.take("version", int)
    if version != VERSION:
        raise reader.error(
            f"the file has format version {version}; this tokctl reads {VERSION}",
            hint="use the tokctl that wrote it, or a newer one",
            code="format-version",
        )
    try:
        given: list[Any] | None = reader.take("normalizer", (list, type(None)))
        normalizers = tuple(normalizer_from_json(value) for value in given or [])
        steps = tuple(step_from_json(value) for value in reader.take("steps", list, default=[]))
        tokenizer = Tokenizer(
            _pre_tokenizer(reader),
            _model(reader.object("model")),
            tuple(
                _added(Reader(value, path, f"$.added_tokens[{i}]"))
                for i, value in enumerate(_list(reader, "added_tokens"))
            ),
            reader.take("bos", (str, type(None))),
            reader.take("eos", (str, type(None))),
            _template(reader.object("post_processor")),
            normalizers=normalizers,
            steps=steps,
        )
        _check_ids(reader, tokenizer)
    except ArtifactError as error:
        if error.where.file is None:
            raise ArtifactError(error.message, hint=error.hint, code=error.code, file=str(path)) from None
        raise
    reader.refuse_others()
    return tokenizer


def self_test(tokenizer: Tokenizer) -> dict[str, Any]:
    """Texts and their ids, with the hash of the tokenizer that gave them."""
    texts = [*SELF_TEST_TEXTS, tokenizer.model.alphabet_text()]
    texts += [name.encode() for name in list(tokenizer.special_ids)[:16]]
    cases = []
    for text in filter(tokenizer.model.knows, texts):
        ids = tokenizer.encode(text)
        decoded = tokenizer.decode_bytes(ids)
        cases.append(
            {
                "hex": text.hex(),
                "ids": ids,
                **({} if decoded == text else {"decoded": decoded.hex()}),
            }
        )
    return {"version": VERSION, "semantic_hash": tokenizer.semantic_hash, "cases": cases}


def check_self_test(tokenizer: Tokenizer, directory: Path) -> int:
    """Encode the texts of ``directory/self-test.json`` again and return their number.

    CheckFailed names the first text whose ids or bytes differ, or says that the hash is another tokenizer's.
    """
    path = directory / SELF_TEST_NAME
    reader = Reader(read_json(path), path)
    expected = reader.take("semantic_hash", str)
    if expected != tokenizer.semantic_hash:
        raise CheckFailed(
            f"the self-test is of tokenizer {expected[:16]}, not of this one ({tokenizer.semantic_hash[:16]})",
            hint="one of the two files was changed; save the tokenizer again",
            code="self-test-hash",
            file=str(path),
        )
    cases = reader.take("cases", list)
    for i, value in enumerate(cases):
        case = Reader(value, path, f"$.cases[{i}]")
        text = _hex(case, case.take("hex", str), "hex")
        ids = case.take("ids", list)
        decoded = _hex(case, case.take("decoded", str), "decoded") if "decoded" in value else text
        found = tokenizer.encode(text)
        if found != ids or tokenizer.decode_bytes(found) != decoded:
            raise CheckFailed(
                f"case {i}: {text!r} gave {found}, expected {ids}", code="self-test-ids", file=str(path), row=i
            )
    return len(cases)


def _model_json(model: BPE) -> dict[str, Any]:
    tokens = [None if token is None else token.hex() for token in model.vocabulary.tokens()]
    while tokens and tokens[-1] is None:
        tokens.pop()
    return {
        "type": "bpe",
        "form": model.form,
        "whole_words": model.whole_words,
        "tokens": tokens,
        "literals": [int(i) for i in np.flatnonzero(model.vocabulary.kinds == LITERAL)],
        "merges": None if model.merges is None else model.merges.tolist(),
        **(_characters_json(model) if isinstance(model, CharacterBPE) else {}),
    }


def _characters_json(model: CharacterBPE) -> dict[str, Any]:
    end = model.end_of_word
    return {
        "unit": "character",
        "end_of_word": None if end is None else end.marker,
        "end_of_word_as": "symbol" if end is not None and not end.is_suffix else "suffix",
        "unknown_id": model.unknown_id,
    }


def _added_json(token: AddedToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.special,
    }


def _template_json(template: Template) -> dict[str, Any]:
    def places(pieces: tuple[Piece, ...]) -> list[dict[str, Any]]:
        return [{"sequence" if isinstance(p.what, str) else "id": p.what, "type_id": p.type_id} for p in pieces]

    return {
        "single": places(template.single),
        "pair": places(template.pair),
        "trim_offsets": template.trim_offsets,
        "trim_keeps_first": template.trim_keeps_first,
    }


def _list(reader: Reader, key: str) -> list[Any]:
    return reader.take(key, list)


def _hex(reader: Reader, text: str, key: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise reader.error(f"{reader.where}.{key} is not hexadecimal: {text[:40]!r}", code="not-hex") from None


def _ids(reader: Reader, key: str) -> list[int]:
    values = _list(reader, key)
    for i, value in enumerate(values):
        if type(value) is not int or value < 0:
            raise reader.error(f"{reader.where}.{key}[{i}] is {value!r}, not an id", code="wrong-shape")
    return values


def _pre_tokenizer(reader: Reader) -> PreTokenizer:
    version = reader.take("unicode_version", str)
    value = reader.take("pre_tokenizer", dict)
    try:
        pre_tokenizer = PreTokenizer.from_json(value)
    except TokctlError as error:
        raise reader.error(f"$.pre_tokenizer: {error.message}", code="pre-tokenizer", hint=error.hint) from None
    except (KeyError, TypeError, ValueError) as error:
        raise reader.error(f"$.pre_tokenizer is not valid: {error}", code="pre-tokenizer") from None
    if pre_tokenizer.unicode_version != version:
        raise reader.error(
            f"$.unicode_version is {version!r}, but the pre-tokenizer's is {pre_tokenizer.unicode_version!r}",
            code="unicode-version",
        )
    return pre_tokenizer


def _model(reader: Reader) -> BPE:
    kind = reader.take("type", str)
    if kind != "bpe":
        raise reader.error(f"{reader.where}.type is {kind!r}; this tokctl reads 'bpe'", code="unknown-model")
    form = reader.take("form", str)
    if form not in ("merges", "ranks"):
        raise reader.error(f"{reader.where}.form is {form!r}, not 'merges' or 'ranks'", code="wrong-shape")
    tokens: list[bytes | None] = []
    for i, value in enumerate(_list(reader, "tokens")):
        if value is not None and not isinstance(value, str):
            raise reader.error(f"{reader.where}.tokens[{i}] is no string", code="wrong-shape")
        tokens.append(None if value is None else _hex(reader, value, f"tokens[{i}]"))
        if tokens[-1] == b"":
            raise reader.error(f"{reader.where}.tokens[{i}] is empty", code="empty-token")
    literals = _ids(reader, "literals")
    for i in literals:
        if i >= len(tokens) or tokens[i] is None:
            raise reader.error(f"{reader.where}.literals names {i}, which is no token", code="unknown-id")
    vocabulary = Vocabulary.from_tokens(tokens, literals)
    whole_words = reader.take("whole_words", bool)
    merges = reader.take("merges", (list, type(None)))
    characters = _characters(reader) if "unit" in reader.value else None
    reader.refuse_others()
    if (merges is None) != (form == "ranks"):
        raise reader.error(f"{reader.where}.merges does not fit the form {form!r}", code="wrong-shape")
    if characters is not None and (merges is None or whole_words):
        raise reader.error(f"{reader.where}: characters have merges and no whole words", code="wrong-shape")
    if merges is None:
        model = BPE(vocabulary, None, None, whole_words)
        unique_tokens(vocabulary)
        return model
    for rank, pair in enumerate(merges):
        if not isinstance(pair, list) or len(pair) != 2 or any(type(side) is not int for side in pair):
            raise reader.error(f"{reader.where}.merges[{rank}] is not a pair of ids: {pair!r}", code="wrong-shape")
    if characters is not None:
        return CharacterBPE.from_merges(vocabulary, merges, **characters)
    return BPE.from_merges(vocabulary, merges, whole_words=whole_words)


def _characters(reader: Reader) -> dict[str, Any]:
    """The options of a model whose base tokens are characters."""
    if reader.take("unit", str) != "character":
        raise reader.error(f"{reader.where}.unit is {reader.value['unit']!r}, not 'character'", code="wrong-shape")
    marker = reader.take("end_of_word", (str, type(None)))
    form = reader.take("end_of_word_as", str)
    if form not in ("suffix", "symbol") or marker == "":
        raise reader.error(f"{reader.where}: the end of a word is {marker!r} as {form!r}", code="wrong-shape")
    end = None if marker is None else EndOfWord(marker, form == "suffix")
    return {"end_of_word": end, "unknown_id": reader.take("unknown_id", (int, type(None)))}


def _added(reader: Reader) -> AddedToken:
    flags = {name: reader.take(name, bool) for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
    token = AddedToken(reader.take("id", int), reader.take("content", str), **flags)
    reader.refuse_others()
    try:
        token.content.encode()
    except UnicodeEncodeError:
        raise reader.error(f"{reader.where}.content holds a lone surrogate", code="wrong-shape") from None
    return token


def _template(reader: Reader) -> Template:
    def places(key: str) -> tuple[Piece, ...]:
        pieces = []
        for i, value in enumerate(_list(reader, key)):
            place = Reader(value, reader.path, f"{reader.where}.{key}[{i}]")
            what: str | int = place.take("sequence", str) if "sequence" in place.value else place.take("id", int)
            pieces.append(Piece(what, place.take("type_id", int)))
            place.refuse_others()
        return tuple(pieces)

    template = Template(
        places("single"), places("pair"), reader.take("trim_offsets", bool), reader.take("trim_keeps_first", bool)
    )
    reader.refuse_others()
    return template


def _check_ids(reader: Reader, tokenizer: Tokenizer) -> None:
    """Every id is a token, an added token or declared unused, and no added token is another of the model's tokens."""
    declared = _ids(reader, "unused_ids")
    found = tokenizer.unused_ids
    if declared != found:
        wrong = sorted(set(declared) ^ set(found))
        raise reader.error(
            f"the ids are not dense: {len(found)} stand for nothing, {len(declared)} are declared so (first: {wrong[:5]})",
            hint="each id below the size is a token, an added token, or listed in unused_ids",
            code="ids-not-dense",
        )
    check_disjoint(tokenizer)

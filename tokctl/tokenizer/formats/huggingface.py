"""Writing Hugging Face files: ``tokenizer.json`` and ``tokenizer_config.json``, on request ``vocab.json`` and ``merges.txt``.

The files are for ``tokenizers.Tokenizer.from_file`` and transformers' ``PreTrainedTokenizerFast``. Text is split either
by ``ByteLevel`` itself (the gpt2 pattern) or by ``Split`` steps before a ``ByteLevel`` that only spells bytes. No space
is put before the text, and the configuration switches the clean-up of spaces off, so that decoding is exact.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokctl.artifacts.durable import write_bytes
from tokctl.errors import ArtifactError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats import huggingface_characters
from tokctl.tokenizer.formats.byte_level import spell_model
from tokctl.tokenizer.formats.huggingface_characters import spell_characters
from tokctl.tokenizer.formats.huggingface_normalizer import normalizer_json
from tokctl.tokenizer.formats.huggingface_pre_tokenizer import pre_tokenizer_json
from tokctl.tokenizer.formats.verification import compare_with_consumer
from tokctl.tokenizer.models.bpe_characters import CharacterBPE
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.template import PAIR, SINGLE, Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer

FILE_NAME = "tokenizer.json"
CONFIG_NAME = "tokenizer_config.json"


def export(tokenizer: Tokenizer, directory: Path, *, vocab_and_merges: bool = False) -> list[Path]:
    """Write the files into ``directory`` (made if missing) and return their paths.

    Raises ArtifactError for what the format can't carry: an alphabet without all 256 bytes (tokenizers drops the others
    silently), a special whose spelling is that of another token, and with ``vocab_and_merges`` a pattern other than
    gpt2 or whole-word look-up, which those two files can't express.
    """
    vocab, merges = _vocabulary(tokenizer)
    files = {
        FILE_NAME: _json(_tokenizer_json(tokenizer, vocab, merges)),
        CONFIG_NAME: _json(_config_json(tokenizer)),
    }
    if vocab_and_merges:
        changes = bool(tokenizer.normalizers or tokenizer.steps)
        is_gpt2 = tokenizer.pre_tokenizer.patterns == NAMED["gpt2"] and not isinstance(tokenizer.model, CharacterBPE)
        if not is_gpt2 or tokenizer.model.whole_words or changes:
            raise ArtifactError(
                "vocab.json and merges.txt stand for the gpt2 pattern and merging alone; this tokenizer has the pattern "
                f"{tokenizer.pre_tokenizer.name!r}"
                + (" and looks whole words up" if tokenizer.model.whole_words else "")
                + (" and rewrites text" if changes else ""),
                hint="export tokenizer.json only",
                code="not-expressible",
            )
        files["vocab.json"] = _json(vocab, indent=None)
        files["merges.txt"] = "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges)
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in files.items():
        write_bytes(directory / name, text.encode())
        paths.append(directory / name)
    return paths


def verify_huggingface(tokenizer: Tokenizer, path: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Encode ``texts`` and every token of the vocabulary through the tokenizers library and compare.

    ``path`` is the exported ``tokenizer.json`` or its directory. The result has ``consumer``, ``version``, ``status``
    (``verified``, ``failed``, or ``unverified`` where the library is not installed), ``n_strings``,
    ``first_divergence`` (None, or the text, the two lists of ids and where they part) and ``unreachable``: tokens that
    their own bytes do not give (``n``, ``ids`` of the first 20, ``n_fewer_with_whole_words``).
    """
    file = path / FILE_NAME if path.is_dir() else path

    def load() -> tuple[str, Any, Any]:
        import tokenizers

        theirs = tokenizers.Tokenizer.from_file(str(file))
        theirs.no_padding()
        theirs.no_truncation()

        def encode(batch: list[str]) -> list[list[int]]:
            return [found.ids for found in theirs.encode_batch_fast(batch, add_special_tokens=False)]

        def decode(ids: list[int]) -> str:
            return str(theirs.decode(ids, skip_special_tokens=False))

        return tokenizers.__version__, encode, decode

    return compare_with_consumer("tokenizers", load, tokenizer, texts)


def _vocabulary(tokenizer: Tokenizer) -> tuple[dict[str, int], list[tuple[str, str]]]:
    model = tokenizer.model
    if isinstance(model, CharacterBPE):
        vocab, merges = spell_characters(model)
    elif not model.is_byte_complete:
        raise ArtifactError(
            f"the alphabet has {int((model.byte_ids >= 0).sum())} of the 256 bytes; tokenizers would drop the others silently",
            hint="fit with all 256 bytes",
            code="not-expressible",
        )
    else:
        vocab, merges = spell_model(model)
    by_id = {token_id: spelling for spelling, token_id in vocab.items()}
    for token in tokenizer.added_tokens:
        if token.id in by_id and by_id[token.id] != token.content:
            del vocab[by_id[token.id]]
        if vocab.setdefault(token.content, token.id) != token.id:
            raise ArtifactError(
                f"tokenizer.json spells tokens in one name space, where {token.content!r} (id {token.id}) is already the "
                f"spelling of token {vocab[token.content]}",
                hint="give the special token another name",
                code="not-expressible",
            )
    return dict(sorted(vocab.items(), key=lambda item: item[1])), merges


def _tokenizer_json(tokenizer: Tokenizer, vocab: dict[str, int], merges: list[tuple[str, str]]) -> dict[str, Any]:
    model = tokenizer.model
    pre_tokenizer: dict[str, Any] | None
    if isinstance(model, CharacterBPE):
        pre_tokenizer = huggingface_characters.pre_tokenizer_json(tokenizer.pre_tokenizer, tokenizer.steps)
        decoder = huggingface_characters.decoder_json(tokenizer, model)
        options = huggingface_characters.model_options(tokenizer, model)
        # a character may be a space, which a merge written as one string would be cut at
        pairs: list[Any] = [list(pair) for pair in merges]
    else:
        pre_tokenizer = pre_tokenizer_json(tokenizer.pre_tokenizer, tokenizer.steps)
        decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        options = {}
        pairs = [f"{left} {right}" for left, right in merges]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_json(token) for token in tokenizer.added_tokens],
        "normalizer": normalizer_json(tokenizer.normalizers),
        "pre_tokenizer": pre_tokenizer,
        "post_processor": _post_processor_json(tokenizer),
        "decoder": decoder,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": model.whole_words,
            **options,
            "vocab": vocab,
            "merges": pairs,
        },
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


def _post_processor_json(tokenizer: Tokenizer) -> dict[str, Any]:
    template = tokenizer.template
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": template.trim_keeps_first,
        "trim_offsets": template.trim_offsets,
        "use_regex": True,
    }
    if (template.single, template.pair) == (SINGLE, PAIR):
        return byte_level
    processor = _template_json(tokenizer, template)
    return {"type": "Sequence", "processors": [byte_level, processor]} if template.trim_offsets else processor


def _template_json(tokenizer: Tokenizer, template: Template) -> dict[str, Any]:
    names = {
        token_id: tokenizer.token_bytes(token_id).decode("utf-8", "backslashreplace")
        for token_id in sorted(template.ids)
    }

    def places(pieces: tuple[Piece, ...]) -> list[dict[str, Any]]:
        return [
            {"Sequence": {"id": piece.what, "type_id": piece.type_id}}
            if isinstance(piece.what, str)
            else {"SpecialToken": {"id": names[piece.what], "type_id": piece.type_id}}
            for piece in pieces
        ]

    return {
        "type": "TemplateProcessing",
        "single": places(template.single),
        "pair": places(template.pair),
        "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]} for i, name in names.items()},
    }


def _config_json(tokenizer: Tokenizer) -> dict[str, Any]:
    model = tokenizer.model
    unknown = model.unknown_id if isinstance(model, CharacterBPE) else None
    names = {token.id: token.content for token in tokenizer.added_tokens}
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(token.id): {key: value for key, value in _added_json(token).items() if key != "id"}
            for token in tokenizer.added_tokens
        },
    }
    ends = (("bos_token", tokenizer.bos_token), ("eos_token", tokenizer.eos_token))
    for key, name in (*ends, ("unk_token", None if unknown is None else names[unknown])):
        if name is not None:
            config[key] = name
    return config


def _json(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent) + "\n"

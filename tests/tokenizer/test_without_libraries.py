"""Loading, encoding and decoding need none of the libraries whose files are read, nor the ``regex`` module."""

import subprocess
import sys
import textwrap

import pytest
from tokenizer.samples import TEXT, small

from tokctl.tokenizer.formats import huggingface, tiktoken

BLOCKED = ("tokenizers", "tiktoken", "sentencepiece", "transformers", "mistral_common", "regex")

SCRIPT = """
    import sys

    class Refuse:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {blocked!r}:
                raise AssertionError(f"{{name}} was imported")

    sys.meta_path.insert(0, Refuse())
    for name in {blocked!r}:
        sys.modules.pop(name, None)
    import tokctl

    text = open({text!r}, encoding="utf-8").read()
    for path in {paths!r}:
        tokenizer = tokctl.load(path)
        ids = tokenizer.encode(text, allowed_special="all")
        flat, _ = tokenizer.encode_flat([text], allowed_special="all", workers=2)
        assert flat.tolist() == ids
        assert tokenizer.decode_bytes(ids) == tokenizer.normalize(text, "all")
        found = tokenizer.encode_with_offsets(text, "raw_codepoints", add_special_tokens=True)
        assert len(found.ids) == len(found.offsets)
        print(len(ids))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file of each format, small, with normalizers and steps among them."""
    import json

    directory = tmp_path_factory.mktemp("files")
    paths = []
    for name, pattern in (("gpt2", "gpt2"), ("sequence", "deepseek-v3"), ("qwen", "qwen2")):
        huggingface.export(small(pattern), directory / name)
        file = directory / name / "tokenizer.json"
        if name == "qwen":
            value = json.loads(file.read_text())
            steps = [
                {"type": "Split", "pattern": {"Regex": r"\s+"}, "behavior": "MergedWithNext", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            ]
            value["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
            value["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
            file.write_text(json.dumps(value))
        paths.append(str(file))
    tiktoken.export(small("cl100k"), directory / "ranks")
    small("o200k").save(directory / "native")
    return directory, [*paths, str(directory / "ranks" / "tokenizer.tiktoken"), str(directory / "native")]


def test_with_the_libraries_blocked(files):
    directory, paths = files
    (directory / "text.txt").write_text(TEXT + "e\u0301 \ufb01 <|endoftext|>", encoding="utf-8")
    script = textwrap.dedent(SCRIPT).format(blocked=BLOCKED, text=str(directory / "text.txt"), paths=paths)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(paths)

"""``tokctl fit bpe``: its modes from the command line, what their manifests prove, and fits that are killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pipeline.cli_answers import raw, tokctl

import tokctl as api

VOCABULARY = "low lower newest widest the cat hat sat on a mat print def return import café naïve 漢字 12 34 ( ) = +"
WORDS = VOCABULARY.split(" ")


def corpus(path: Path, n: int, seed: int) -> Path:
    draw = random.Random(seed)
    path.write_text(" ".join(draw.choice(WORDS) + draw.choice(["", "s", "ed", "ing"]) for _ in range(n)), "utf-8")
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("texts")
    return corpus(place / "a.txt", 4000, 1), corpus(place / "b.txt", 3000, 2)


def facts(out: Path) -> dict:
    return json.loads((out / "manifest.json").read_bytes())["facts"]


def files(out: Path) -> dict[str, bytes]:
    names = ("tokctl.json", "self-test.json")
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*.json")) if p.name in names}


# --- replay ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--replay"], {"replayed": 44, "merges": "all"}),
        (["--replay", "all"], {"replayed": 44, "merges": "all"}),
        (["--replay", "5"], {"replayed": 5, "merges": "sample"}),
        (["--replay=1"], {"replayed": 1, "merges": "sample"}),
    ],
)
def test_replay_is_proven_in_the_manifest(words, expected, texts, tmp_path):
    # bare, it stands before an option or a file
    assert tokctl("fit", "bpe", *words, texts[0], "--vocab-size", "300", "-o", tmp_path / "out").code == 0
    found = facts(tmp_path / "out")["replay"]
    assert expected.items() <= found.items()
    assert (found["of"], found["result"]) == (44, "equal")
    if found["merges"] == "sample":
        assert found["ranks"][0] == 0 and (found["replayed"] == 1 or found["ranks"][-1] == 43)
    assert sorted(found.get("ranks", [])) == found.get("ranks", [])


def test_a_replay_that_differs_is_a_failed_check(texts, tmp_path, monkeypatch):
    from tokctl.tokenizer.trainers import bpe_sizes

    fit_bpe = bpe_sizes.fit_bpe

    def wrong(*arguments, **options):
        fit = fit_bpe(*arguments, **options)
        fit.pair_counts[3] += 1
        return fit

    monkeypatch.setattr(bpe_sizes, "fit_bpe", wrong)
    answer = tokctl("fit", "bpe", texts[0], "--vocab-size", "300", "-o", tmp_path / "out", "--replay")
    assert (answer.code, answer.error["code"], answer.error["where"]["row"]) == (1, "replay-differs", 3)
    assert not (tmp_path / "out").exists()


def test_replay_in_a_pipeline_file(texts, tmp_path):
    pipeline = tmp_path / "pipeline.toml"
    pipeline.write_text(
        f'[pipeline]\n[node.fit]\nstage = "fit bpe"\ninput = ["{texts[0]}"]\nvocab-size = 300\nreplay = 7\n'
    )
    answer = tokctl("run", pipeline, "-o", tmp_path / "out")
    assert answer.code == 0
    assert facts(tmp_path / "out" / "fit")["replay"]["replayed"] == 7


@pytest.mark.parametrize("value", ["0", "-3", "some", "1.5"])
def test_a_number_that_is_none_is_refused(value, texts, tmp_path):
    answer = tokctl("fit", "bpe", texts[0], "--vocab-size", "300", "-o", tmp_path / "out", f"--replay={value}")
    assert (answer.code, answer.error["code"]) == (2, "bad-parameter")


# --- counts ---------------------------------------------------------------------------------------------------------


def test_counts_of_several_machines_are_the_counts_of_one(texts, tmp_path):
    for name, inputs in {"a": texts[:1], "b": texts[1:], "both": texts}.items():
        assert tokctl("count", *inputs, "-o", tmp_path / name, "--special", "cat").code == 0
    fit = ["fit", "bpe", "--vocab-size", "270,300", "--special", "cat"]
    assert tokctl(*fit, "--counts", tmp_path / "both", "-o", tmp_path / "one").code == 0
    assert tokctl(*fit, "--counts", tmp_path / "a", "--counts", tmp_path / "b", "-o", tmp_path / "two").code == 0
    assert tokctl(*fit, "--counts", tmp_path / "b", "--counts", tmp_path / "a", "-o", tmp_path / "turned").code == 0
    assert tokctl("count", "--merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "merged").code == 0
    assert tokctl(*fit, "--counts", tmp_path / "merged", "-o", tmp_path / "three").code == 0
    one = files(tmp_path / "one")
    assert sorted(one) == [f"{size}/{name}" for size in (270, 300) for name in ("self-test.json", "tokctl.json")]
    assert files(tmp_path / "two") == files(tmp_path / "turned") == files(tmp_path / "three") == one
    both, single = facts(tmp_path / "two"), facts(tmp_path / "one")
    assert both == single
    assert int(single["specials_in_corpus"]["cat"]) > 100
    manifests = [json.loads((tmp_path / name / "manifest.json").read_bytes()) for name in ("two", "turned")]
    assert manifests[0]["fingerprint"] == manifests[1]["fingerprint"]


def test_counts_of_different_patterns_are_not_added_up(texts, tmp_path):
    assert tokctl("count", texts[0], "-o", tmp_path / "a").code == 0
    assert tokctl("count", texts[1], "-o", tmp_path / "b", "--pattern", "cl100k").code == 0
    answer = tokctl(
        "fit",
        "bpe",
        "--counts",
        tmp_path / "a",
        "--counts",
        tmp_path / "b",
        "--vocab-size",
        "300",
        "-o",
        tmp_path / "o",
    )
    assert (answer.code, answer.error["code"]) == (4, "counts-differ")


# --- extend ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(texts, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("base") / "base"
    special = ["--special", "<s>", "--special", "</s>", "--bos", "<s>"]
    assert tokctl("fit", "bpe", texts[0], "--vocab-size", "290", "-o", out, "--pattern", "cl100k", *special).code == 0
    return out


def test_extend_from_text_and_from_counts(base, texts, tmp_path):
    extend = ["fit", "bpe", "--extend", base, "--vocab-size", "300,310"]
    assert tokctl(*extend, texts[1], "-o", tmp_path / "text", "--replay").code == 0
    assert (
        tokctl(
            "count", texts[1], "-o", tmp_path / "counts", "--pattern", "cl100k", "--special", "<s>", "--special", "</s>"
        ).code
        == 0
    )
    assert tokctl(*extend, "--counts", tmp_path / "counts", "-o", tmp_path / "counted").code == 0
    assert files(tmp_path / "text") == files(tmp_path / "counted")
    found, old = facts(tmp_path / "text"), api.load(base)
    new = api.load(tmp_path / "text" / "310")
    assert new.vocabulary.tokens()[:290] == old.vocabulary.tokens()
    assert new.pre_tokenizer == old.pre_tokenizer
    assert found["base"] == {
        "form": "merges",
        "merges": 290 - 256 - 2,
        "semantic_hash": old.semantic_hash,
        "vocab_size": 290,
    }
    assert found["extension"] == {"new_tokens": 20, "passed_over": 0, "unreachable": 0}
    assert found["sizes"]["310"]["arithmetic"] == "290 of the base + 0 specials + 20 merges = 310"
    assert {k: found["sizes"]["310"][k] for k in ("inherited", "specials", "merges", "vocab_size")} == {
        "inherited": 290,
        "specials": 0,
        "merges": 20,
        "vocab_size": 310,
    }
    assert found["replay"]["replayed"] == 20
    manifest = json.loads((tmp_path / "text" / "manifest.json").read_bytes())
    assert [item["slot"] for item in manifest["inputs"]] == ["input", "extend"]


def test_extend_carves_out_what_the_base_finds_first(base, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("ab<s>ab " * 50 + "xyxyxy " * 60)
    out = tmp_path / "out"
    assert (
        tokctl("fit", "bpe", "--extend", base, text, "--vocab-size", "292", "-o", out, "--on-short", "warn").code == 0
    )
    assert facts(out)["specials_in_corpus"] == {"<s>": "50", "</s>": "0"}
    assert not any(b"<s" in token for token in api.load(out).vocabulary.tokens()[290:])


def test_extend_a_file_of_another_library(base, texts, tmp_path):
    assert tokctl("export", "tiktoken", "--tokenizer", base, "-o", tmp_path / "ranks", "--name", "own").code == 0
    assert tokctl("export", "huggingface", "--tokenizer", base, "-o", tmp_path / "hf").code == 0
    made = []
    for name in ("ranks/own.tiktoken", "hf/tokenizer.json"):
        out = tmp_path / f"out{len(made)}"
        assert tokctl("fit", "bpe", "--extend", tmp_path / name, texts[1], "--vocab-size", "310", "-o", out).code == 0
        made.append(api.load(out))
    ids = [tokenizer.encode(texts[1].read_text("utf-8")) for tokenizer in made]
    assert ids[0] == ids[1]
    assert [tokenizer.model.form for tokenizer in made] == ["ranks", "merges"]
    assert tokctl("export", "tiktoken", "--tokenizer", tmp_path / "out0", "-o", tmp_path / "again").code == 0


def test_extend_a_base_that_rewrites_text(texts, tmp_path):
    from dataclasses import replace

    from tokctl.tokenizer.normalizers import from_json

    plain = api.fit("bpe", {b"the": 5}, vocab_size=258)
    replace(
        plain, normalizers=(from_json({"type": "nfc", "unicode_version": plain.pre_tokenizer.unicode_version}),)
    ).save(tmp_path / "nfc")
    decomposed = tmp_path / "text.txt"
    decomposed.write_text("cafe\u0301 " * 50, "utf-8")
    extend = ["fit", "bpe", "--extend", tmp_path / "nfc", "--on-short", "warn", "--vocab-size", "300"]
    assert tokctl(*extend, decomposed, "-o", tmp_path / "out").code == 0
    assert "é".encode() in b"|".join(api.load(tmp_path / "out").vocabulary.tokens()[258:])
    assert tokctl("count", decomposed, "-o", tmp_path / "counts").code == 0
    answer = tokctl(*extend, "--counts", tmp_path / "counts", "-o", tmp_path / "no")
    assert (answer.code, answer.error["code"]) == (2, "base-rewrites-text")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--pattern", "gpt2"], "pattern-differs", "leave the pattern out"),
        (["--byte-order", "raw"], "options-differ", "leave them out"),
        (["--unit", "character"], "options-differ", "leave them out"),
        (["--special", "<s>"], "special-is-token", "leave it out"),
        (["--vocab-size", "280"], "vocabulary-too-small", "at least 290"),
    ],
)
def test_what_contradicts_the_base_is_refused_and_taught(words, code, says, base, texts, tmp_path):
    size = [] if "--vocab-size" in words else ["--vocab-size", "300"]
    answer = tokctl("fit", "bpe", "--extend", base, texts[1], *size, *words, "-o", tmp_path / "out")
    assert (answer.code, answer.error["code"]) == (2, code)
    assert says in answer.error["hint"]


def test_counts_of_another_pattern_than_the_base_are_refused(base, texts, tmp_path):
    assert tokctl("count", texts[1], "-o", tmp_path / "counts").code == 0
    answer = tokctl(
        "fit", "bpe", "--extend", base, "--counts", tmp_path / "counts", "--vocab-size", "300", "-o", tmp_path / "out"
    )
    assert (answer.code, answer.error["code"]) == (2, "pattern-differs")
    assert "--pattern cl100k" in answer.error["hint"]


# --- characters -----------------------------------------------------------------------------------------------------


def test_characters_from_text(texts, tmp_path):
    out = tmp_path / "out"
    words = ["--unit", "character", "--ties", "subword-nmt", "--special", "<unk>", "--unk", "<unk>", "--replay", "all"]
    assert tokctl("fit", "bpe", texts[0], "--vocab-size", "90,120", "-o", out, *words).code == 0
    found = facts(out)
    size = found["sizes"]["120"]
    assert size["specials"] + size["bytes"] + size["alphabet"] + size["merges"] == size["vocab_size"] == 120
    assert size["bytes"] == 0 and size["alphabet"] > 30
    assert found["alphabet"]["dropped"] == 0
    assert int(found["white_space_dropped"]) == 3999
    text = texts[0].read_text("utf-8")
    tokenizer = api.load(out / "120")
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokctl("verify", out).code == 0
    assert tokctl("inspect", "--tokenizer", out / "120", "low  lower").code == 0
    compared = tokctl(
        "compare", "--validation", texts[1], "--candidate", f"a={out / '90'}", "--candidate", f"b={out / '120'}"
    )
    assert compared.code == 0
    assert tokctl("export", "huggingface", "--tokenizer", out / "120", "-o", tmp_path / "hf").code == 0
    exported = json.loads((tmp_path / "hf" / "manifest.json").read_bytes())["facts"]["verification"]
    assert exported["status"] in ("verified", "unverified")


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["--limit-alphabet", "5"], 3, "alphabet-drops-too-much"),
        (["--limit-alphabet", "5", "--max-dropped", "1"], 0, None),
        (["--vocab-size", "9"], 2, "vocabulary-too-small"),
        (["--unk", "<unk>"], 2, "unknown-special"),
        (["--end-of-word", ""], 2, "white-space-lost"),
        (["--end-of-word", "", "--pattern", "gpt2"], 0, None),
        (["--end-of-word", "low"], 3, "marker-in-corpus"),
        (["--byte-order", "raw"], 2, "options-differ"),
        (["--unit", "byte", "--limit-alphabet", "5"], 2, "options-differ"),
        (["--unit", "byte", "--pattern", "whitespace"], 2, "white-space-lost"),
    ],
)
def test_characters_refuse_what_would_be_lost(words, exit_code, code, texts, tmp_path):
    unit = [] if "--unit" in words else ["--unit", "character"]
    size = [] if "--vocab-size" in words else ["--vocab-size", "300"]
    answer = tokctl("fit", "bpe", texts[0], *unit, *size, *words, "-o", tmp_path / "out", "--on-short", "warn")
    assert answer.code == exit_code, answer
    if code is not None:
        assert answer.error["code"] == code
    if "1" in words:
        dropped = facts(tmp_path / "out")["alphabet"]
        assert dropped["dropped"] > 20 and dropped["dropped_characters"][0]["words"]


def test_an_unknown_character_is_named_or_becomes_the_unknown_token(texts, tmp_path):
    fit = ["fit", "bpe", texts[0], "--unit", "character", "--vocab-size", "100"]
    assert tokctl(*fit, "-o", tmp_path / "strict").code == 0
    assert tokctl(*fit, "-o", tmp_path / "unk", "--special", "<unk>", "--unk", "<unk>").code == 0
    (tmp_path / "text.txt").write_text("low ☃low\n", "utf-8")
    answer = tokctl("encode", "--tokenizer", tmp_path / "strict", tmp_path / "text.txt", "-o", tmp_path / "ids")
    assert (answer.code, answer.error["code"]) == (3, "unknown-character")
    assert "'☃' (U+2603)" in answer.error["message"]
    assert tokctl("encode", "--tokenizer", tmp_path / "unk", tmp_path / "text.txt", "-o", tmp_path / "ids").code == 0
    tokenizer = api.load(tmp_path / "unk")
    assert tokenizer.decode(tokenizer.encode("low ☃low")) == "low <unk>low"


# --- killed ---------------------------------------------------------------------------------------------------------

RUN = "import sys; import tokctl.stages.fit_bpe as stage; stage.CHECKPOINT_SECONDS = 0.0; from tokctl.cli import main; main()"


@pytest.fixture(scope="module")
def many_words(tmp_path_factory) -> Path:
    """Counts of 40,000 distinct words: a fit of a second or so."""
    place = tmp_path_factory.mktemp("many")
    draw = random.Random(4)
    letters = "abcdefghijklmnop"
    rows = [{"text": "".join(draw.choices(letters, k=12)), "count": draw.randint(1, 50)} for _ in range(40_000)]
    (place / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert tokctl("count", "--weighted", place / "words.jsonl", "-o", place / "counts").code == 0
    return place


FIT = ["--vocab-size", "20k,40k", "--min-frequency", "1"]


def start(place: Path, out: Path) -> subprocess.Popen:
    arguments = ["fit", "bpe", "--counts", place / "counts", *FIT, "-o", out]
    return subprocess.Popen([sys.executable, "-c", RUN, *map(str, arguments)], stderr=subprocess.PIPE, text=True)


def wait_for_checkpoint(process: subprocess.Popen, out: Path, n_bytes: int) -> Path:
    """Until the run has saved a checkpoint of ``n_bytes`` or more."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        for path in out.parent.glob(f"{out.name}.partial-*/.work/checkpoint"):
            if path.stat().st_size >= n_bytes:
                return path
        time.sleep(0.002)
    raise AssertionError(f"no checkpoint before the run ended: {process.communicate()}")


def test_a_killed_fit_goes_on_from_its_checkpoint_to_the_same_bytes(many_words, tmp_path):
    undisturbed = start(many_words, tmp_path / "whole")
    assert undisturbed.wait() == 0, undisturbed.communicate()
    whole = {
        p.relative_to(tmp_path / "whole"): p.read_bytes()
        for p in (tmp_path / "whole").rglob("*.json")
        if p.name != "run.json"
    }
    out = tmp_path / "killed"
    for n_bytes in (1, 300_000, 600_000):
        process = start(many_words, out)
        checkpoint = wait_for_checkpoint(process, out, n_bytes)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert checkpoint.exists() and not out.exists()
    process = start(many_words, out)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert "going on from" in said and "merges of an earlier run" in said
    assert {p.relative_to(out): p.read_bytes() for p in out.rglob("*.json") if p.name != "run.json"} == whole
    assert not list(tmp_path.glob("*.partial-*"))


def test_a_broken_checkpoint_is_begun_anew(many_words, tmp_path):
    out = tmp_path / "out"
    process = start(many_words, out)
    checkpoint = wait_for_checkpoint(process, out, 1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    process = start(many_words, out)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert "going on from" not in said


def test_ctrl_c_ends_at_once_and_keeps_the_checkpoint(many_words, tmp_path):
    out = tmp_path / "out"
    process = start(many_words, out)
    checkpoint = wait_for_checkpoint(process, out, 1)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert time.monotonic() - started < 5
    assert "Traceback" not in said
    assert checkpoint.exists()
    again = ["fit", "bpe", "--counts", str(many_words / "counts"), *FIT, "-o", str(out), "--dry-run"]
    answer = raw(*again)
    assert answer[0] == 0 and "would be resumed" in answer[1]

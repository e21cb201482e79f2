"""``tokctl encode`` on disk: types, forms, tasks, dropout, and reading it all back."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline.cli_answers import check_rows, raw, tokctl
from pipeline.small_pipeline import differences, tree
from tokenizer.samples import SENTENCES, SPECIALS, small

import tokctl as api
from tokctl.corpus import encode_tasks
from tokctl.corpus.encoded_ids import ids_type
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.tokenizer import Tokenizer

TEXTS = {f"d{k:02d}": "".join(SENTENCES[k % 8 :]) * (k % 4) + SENTENCES[k % 3] * (k != 7) for k in range(30)}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """``tok``, ``wide`` (a vocabulary beyond uint16), ``rows.jsonl`` and its documents in many small shards."""
    root = tmp_path_factory.mktemp("encode")
    small().save(root / "tok")
    base = small()
    wide = Tokenizer(base.pre_tokenizer, base.model, (*base.added_tokens, AddedToken(70_000, "<far>")))
    wide.save(root / "wide")
    write_rows(root / "rows.jsonl", TEXTS)
    for name, size in (("documents", "2kB"), ("one-shard", "1GB")):
        command = ["extract", root / "rows.jsonl", "--id-field", "id", "-o", root / name, "--shard-bytes", size]
        assert tokctl(*command).code == 0
    assert len(list((root / "documents").glob("part-*.parquet"))) > 5
    return root


def write_rows(path, texts):
    path.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()))


def encode(place, out, *more, source="documents", tokenizer="tok"):
    answer = tokctl("encode", "--tokenizer", place / tokenizer, place / source, "-o", out, *more)
    assert answer.code == 0, answer.document
    assert tokctl("verify", out).result["findings"] == []
    return check_rows(out)


def rows_of(out):
    """doc_id without the file's name -> ids."""
    table = pa.concat_tables(pq.read_table(path) for path in sorted(out.glob("part-*.parquet")))
    names = [name.partition("#")[2] for name in table["doc_id"].to_pylist()]
    return dict(zip(names, table["ids"].to_pylist(), strict=True))


EXPECTED = {name: small().encode(text) for name, text in TEXTS.items()}


@pytest.mark.parametrize("more", [[], ["--shard-bytes", "3kB"], ["--shard-bytes", "1"], ["--workers", "3"]], ids=str)
@pytest.mark.parametrize("source", ["documents", "one-shard", "rows.jsonl"])
def test_shards_of_any_size_and_raw_files_have_the_same_rows(place, tmp_path, source, more):
    options = [*more, *(["--id-field", "id"] if source.endswith("jsonl") else [])]
    manifest = encode(place, tmp_path / "out", *options, source=source)
    assert list(rows_of(tmp_path / "out").items()) == list(EXPECTED.items())
    assert manifest["counts"]["rows_out"] == 30
    n_parts = len(list((tmp_path / "out").glob("part-*.parquet")))
    assert n_parts > 3 if source == "documents" and "--shard-bytes" in more else n_parts == 1


def test_workers_change_no_byte(place, tmp_path):
    for workers in ("1", "3"):
        for form in ("parquet", "flat"):
            options = ["--workers", workers, "--shard-bytes", "3kB", "--output-format", form, "--dropout", "0.3"]
            encode(place, tmp_path / f"{form}-{workers}", *options)
    for form in ("parquet", "flat"):
        assert differences(tree(tmp_path / f"{form}-1"), tree(tmp_path / f"{form}-3")) == []


def test_the_type_of_the_ids(place, tmp_path):
    for tokenizer, options, kind in (
        ("tok", [], "uint16"),
        ("tok", ["--ids-type", "uint32"], "uint32"),
        ("tok", ["--ids-type", "uint16"], "uint16"),
        ("wide", [], "uint32"),
    ):
        out = tmp_path / f"{tokenizer}-{len(options)}-{kind}"
        manifest = encode(place, out, *options, tokenizer=tokenizer)
        assert manifest["facts"]["ids_type"] == kind
        schema = pq.read_schema(out / "part-00000.parquet")
        assert schema.field("ids").type == pa.large_list(pa.type_for_alias(kind))
        assert schema.names == ["doc_id", "source", "license", "split", "ids", "n_tokens", "truncated"]
        assert rows_of(out) == EXPECTED
    answer = tokctl(
        *("encode", "--tokenizer", place / "wide", place / "documents", "-o", tmp_path / "no", "--ids-type", "uint16")
    )
    assert (answer.code, answer.error["code"]) == (2, "ids-type")
    assert (ids_type(65_536), ids_type(65_537)) == ("uint16", "uint32")


@pytest.mark.parametrize("kind", ["uint16", "uint32"])
def test_flat_files_are_mapped_and_read_back(place, tmp_path, kind):
    out = tmp_path / "flat"
    manifest = encode(place, out, "--output-format", "flat", "--eos", "--ids-type", kind, "--shard-bytes", "3kB")
    header = json.loads((out / "flat.json").read_bytes())
    dtype = {"uint16": "<u2", "uint32": "<u4"}[kind]
    end = small().token_id(SPECIALS[0])
    expected = [[*ids, end] for ids in EXPECTED.values()]
    assert header["dtype"] == dtype and header["tokenizer"] == small().semantic_hash
    ids = np.memmap(out / "ids.bin", dtype, "r")  # as another program would
    offsets = np.fromfile(out / "offsets.bin", "<i8")
    assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == expected
    flat = api.load_ids(out)
    assert isinstance(flat.ids, np.memmap) and flat.ids.dtype == np.dtype(dtype)
    assert [flat.document(i).tolist() for i in range(len(flat))] == expected
    assert [name.partition("#")[2] for name in flat.doc_ids()] == list(EXPECTED)
    assert (flat.vocab_size, flat.tokenizer) == (small().vocab_size, manifest["facts"]["tokenizer"])
    with pytest.raises(IndexError):
        flat.document(30)
    code, text, _ = raw("decode", "--tokenizer", str(place / "tok"), str(out))
    assert code == 0 and text == "".join(text + SPECIALS[0] for text in TEXTS.values())
    documents = pq.read_table(sorted((out / "documents").glob("part-*.parquet"))[0])
    assert documents.column_names == ["doc_id", "source", "license", "split", "n_tokens", "truncated"]


def test_decode_reads_shards_back(place, tmp_path):
    encode(place, tmp_path / "out", "--shard-bytes", "3kB")
    code, text, _ = raw("decode", "--tokenizer", str(place / "tok"), str(tmp_path / "out"))
    assert code == 0 and text == "".join(TEXTS.values())


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("ids.bin", lambda data: data[:-2], "damaged-ids"),
        ("offsets.bin", lambda data: data + bytes(8), "damaged-ids"),
        ("offsets.bin", lambda data: b"\x01" + data[1:], "damaged-ids"),
        ("flat.json", lambda data: data.replace(b"<u2", b"<u8"), "damaged-ids"),
        ("flat.json", lambda data: b"{}", "damaged-ids"),
        ("flat.json", lambda data: data[:20], "not-json"),
    ],
)
def test_damaged_flat_files_are_noticed(place, tmp_path, name, change, code):
    out = tmp_path / "flat"
    encode(place, out, "--output-format", "flat")
    (out / name).write_bytes(change((out / name).read_bytes()))
    with pytest.raises(api.ArtifactError) as caught:
        api.load_ids(out)
    assert caught.value.code == code and caught.value.where.file is not None
    codes = {finding["code"] for finding in json.loads(raw("verify", str(out), "--json")[1])["result"]["findings"]}
    assert codes == {"changed-output", code}
    assert tokctl("decode", "--tokenizer", place / "tok", out).error["code"] == "changed-output"


def test_what_is_not_flat_is_refused(place, tmp_path):
    with pytest.raises(api.ArtifactError, match=r"no flat\.json"):
        api.load_ids(place / "documents")


def test_nothing_to_encode(place, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    for form in ("parquet", "flat"):
        out = tmp_path / form
        answer = tokctl(
            *("encode", "--tokenizer", place / "tok", tmp_path / "empty.jsonl", "-o", out, "--output-format", form)
        )
        assert answer.code == 0 and check_rows(out)["facts"]["largest_id"] == -1
        assert tokctl("verify", out).code == 0
        assert tokctl("decode", "--tokenizer", place / "tok", out).result["rows"] == []
    assert len(api.load_ids(tmp_path / "flat")) == 0


def test_rejects_are_counted(place, tmp_path):
    lines = [json.dumps({"id": "a", "text": "the dog"}), "{", json.dumps({"id": "b", "text": "fox"})]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    for form in ("parquet", "flat"):
        command = ["encode", "--tokenizer", place / "tok", tmp_path / "rows.jsonl", "--errors", "skip"]
        assert tokctl(*command, "-o", tmp_path / form, "--output-format", form).code == 0
        assert check_rows(tmp_path / form)["counts"] == {"rows_in": 3, "rows_out": 2, "rows_rejected": 1}


def test_a_run_that_was_cut_off_goes_on(place, tmp_path, monkeypatch):
    options = ["--shard-bytes", "3kB", "--output-format", "flat"]
    encode(place, tmp_path / "whole", *options)
    done: list[object] = []
    real = encode_tasks.write_task

    def dies(task, *rest):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task)
        return real(task, *rest)

    monkeypatch.setattr(encode_tasks, "write_task", dies)
    command = ["encode", "--tokenizer", str(place / "tok"), str(place / "documents"), "-o", str(tmp_path / "cut")]
    assert raw(*command, *options, "--workers", "1")[0] == 130
    assert len(list(tmp_path.glob("cut.partial-*/.work/encode/*/result.json"))) == 2
    rest: list[object] = []
    monkeypatch.setattr(encode_tasks, "write_task", lambda task, *more: (rest.append(task), real(task, *more))[1])
    assert raw(*command, *options, "--workers", "1")[0] == 0
    assert rest and not set(done) & set(rest)
    assert differences(tree(tmp_path / "cut"), tree(tmp_path / "whole")) == []


def test_dropout_depends_on_the_documents_name_alone(place, tmp_path):
    options = ["--dropout", "0.25", "--seed", "9", "--epoch", "2", "--view", "1"]
    manifest = encode(place, tmp_path / "a", *options)
    found = rows_of(tmp_path / "a")
    dropout = api.Dropout(0.25, 9, 2, 1)
    doc_ids = pq.read_table(tmp_path / "a" / "part-00000.parquet")["doc_id"].to_pylist()
    texts = zip(doc_ids, TEXTS.items(), strict=True)
    expected = {name: small().encode(text, dropout=dropout, sample=doc_id) for doc_id, (name, text) in texts}
    assert found == expected != EXPECTED
    (tmp_path / "reversed").mkdir()
    write_rows(tmp_path / "reversed/rows.jsonl", dict(reversed(TEXTS.items())))
    more = [*options, "--id-field", "id", "--workers", "3"]
    encode(place, tmp_path / "b", *more, source=tmp_path / "reversed/rows.jsonl")
    assert rows_of(tmp_path / "b") == found
    facts = manifest["facts"]["dropout"]
    assert [facts[name] for name in ("method", "p", "generator", "seed")] == [
        "bpe-dropout",
        "0.25",
        "philox-4x32-10",
        "9",
    ]
    assert facts["sample"].startswith("doc_id")
    assert manifest["facts"]["dropout"]["scope"] == ["seed", "epoch", "sample", "view", "occurrence"]
    encode(place, tmp_path / "c", "--dropout", "0.25", "--seed", "9", "--epoch", "3", "--view", "1")
    assert rows_of(tmp_path / "c") != found
    encode(place, tmp_path / "d", "--dropout", "0")
    assert rows_of(tmp_path / "d") == EXPECTED


def test_rows_on_stdout_obey_the_same_options(place):
    rows = tokctl(
        *("encode", "--tokenizer", place / "tok", place / "documents", "--dropout", "0.25", "--seed", "9")
    ).result["rows"]
    for row in rows:
        text = TEXTS[row["doc_id"].partition("#")[2]]
        assert row["ids"] == small().encode(text, dropout=api.Dropout(0.25, 9), sample=row["doc_id"])


def test_the_manifest_names_policy_and_schedule(place, tmp_path):
    write_rows(tmp_path / "long.jsonl", {"a": "x" + "a" * 25_010})
    found = {}
    for policy in ("none", "llama3"):
        manifest = encode(
            tmp_path,
            tmp_path / policy,
            "--split-policy",
            policy,
            "--id-field",
            "id",
            source="long.jsonl",
            tokenizer=place / "tok",
        )
        assert manifest["facts"]["boundary_policy"]["split_policy"] == policy
        assert manifest["facts"]["merge_schedule"] == {"name": "occurrence-priority", "n_dependent_tokens": 0}
        found[policy] = rows_of(tmp_path / policy)["a"]
        assert found[policy] == small().encode("x" + "a" * 25_010, split_policy=policy)
    assert found["none"] != found["llama3"]


def test_a_tokenizer_that_depends_on_the_schedule_can_be_refused(place, tmp_path):
    from tokenizer.test_schedules import save_ranks

    path = save_ranks(tmp_path)
    command = ["encode", "--tokenizer", path, place / "documents", "-o", tmp_path / "out"]
    answer = tokctl(*command, "--schedules", "refuse")
    assert (answer.code, answer.error["code"]) == (4, "schedules")
    answer = tokctl(*command)
    assert answer.code == 0 and "order of merging" in answer.stderr
    assert check_rows(tmp_path / "out")["facts"]["merge_schedule"]["n_dependent_tokens"] == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--seed", "3"], "no-dropout"),
        (["--dropout", "1.5"], "bad-parameter"),
        (["--output-format", "flat", "--offsets", "raw_codepoints"], "flat-offsets"),
        (["--split-policy", "llama"], "usage"),
    ],
)
def test_options_that_do_not_go_together(place, tmp_path, options, code):
    answer = tokctl("encode", "--tokenizer", place / "tok", place / "documents", "-o", tmp_path / "out", *options)
    assert (answer.code, answer.error["code"]) == (2, code)


def test_stdout_has_no_form(place):
    for options in (["--output-format", "flat"], ["--ids-type", "uint16"]):
        answer = tokctl("encode", "--tokenizer", place / "tok", place / "documents", *options)
        assert (answer.code, answer.error["code"]) == (2, "no-output")

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from runtime.toy_stage import STAGE, ToyParameters

from tokctl.artifacts.digests import DigestCache
from tokctl.runtime.execute import execute, plan_stage
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.stage import Stage
from tokctl.stages import STAGES, load_stage

READING = replace(STAGE, inputs=(replace(STAGE.inputs[0], libraries=("numpy",)),))


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKCTL_CACHE_DIR", str(tmp_path / "cache"))


def libraries(stage: Stage, source: Path, out: Path) -> set[str]:
    return set(plan_stage(stage, ToyParameters(), {"input": [str(source)]}, out, DigestCache()).parts["libraries"])


def test_what_reads_raw_files_counts_only_where_there_are_some(tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_text("a\n")
    assert libraries(READING, tmp_path / "raw.txt", tmp_path / "out") == {"pydantic", "numpy"}
    execute(STAGE, ToyParameters(), {"input": [str(tmp_path / "raw.txt")]}, tmp_path / "made", ExecutionOptions())
    assert libraries(READING, tmp_path / "made", tmp_path / "out") == {"pydantic"}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_that_reads_pages_knows_its_extractor(name: str) -> None:
    stage = load_stage(name)
    if "max_document_bytes" not in stage.parameters.model_fields:
        pytest.skip("reads no raw documents")
    assert "resiliparse" in {*stage.libraries, *(library for slot in stage.inputs for library in slot.libraries)}

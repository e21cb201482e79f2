"""A small stage for the runtime's tests: upper-cases the lines of each input file, rejects empty ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tokctl.runtime.execute import execute
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.parameters import Quantity, StageParameters, param
from tokctl.runtime.stage import Input, Stage
from tokctl.runtime.stage_run import StageRun


class ToyParameters(StageParameters):
    suffix: str = param("", help="Appended to each line.")
    size: Quantity = param(10, help="A size.", ge=1)
    chatty: bool = param(False, help="Says more.", affects_output=False)


def expand(argument: str, parameters: Any) -> list[tuple[str, Path]]:
    path = Path(argument)
    if path.is_dir():
        return [(f.name, f) for f in sorted(path.iterdir())]
    return [(path.name, path)]


def upper(task: tuple[str, str], directory: Path) -> dict[str, Any]:
    path, suffix = task
    lines = Path(path).read_text().splitlines()
    kept = [line.upper() + suffix for line in lines if line]
    if "BOOM" in kept:
        raise RuntimeError("boom")
    (directory / "part").write_text("\n".join(kept))
    return {"rows_in": len(lines), "rows_out": len(kept)}


def run(run: StageRun, executor: Any = "threads") -> None:
    tasks = [(str(f.path), run.parameters.suffix) for item in run.inputs["input"] for f in item.files]
    for index, task in enumerate(run.tasks("upper", tasks, upper, executor=executor)):
        run.rows_in += task.result["rows_in"]
        run.rows_out += task.result["rows_out"]
        run.rows_rejected += task.result["rows_in"] - task.result["rows_out"]
        run.adopt(task.directory / "part", f"part-{index:05d}", rows=task.result["rows_out"])
    run.facts["n_files"] = len(tasks)


def run_in_processes(stage_run: StageRun) -> None:
    run(stage_run, "processes")


STAGE = Stage(
    name="toy",
    version=1,
    summary="Upper-case.",
    description="Upper-case the lines of files.",
    parameters=ToyParameters,
    inputs=(Input("input", "files", many=True, accepts=("toy",), expand=expand, is_set=True),),
    run=run,
    libraries=("pydantic",),
)
PROCESS_STAGE = Stage(**{**vars(STAGE), "run": run_in_processes})


def loses_rows(stage_run: StageRun) -> None:
    run(stage_run)
    stage_run.rows_out -= 1


LOSING_STAGE = Stage(**{**vars(STAGE), "run": loses_rows})


if __name__ == "__main__":
    source, out = sys.argv[1:]
    execute(STAGE, ToyParameters(), {"input": [source]}, Path(out), ExecutionOptions(workers=1))

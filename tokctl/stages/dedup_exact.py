"""``tokctl dedup exact``: one of several documents whose canonical texts have the same bytes survives."""

from __future__ import annotations

from typing import Literal

from tokctl.runtime.parameters import param
from tokctl.runtime.stage import Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.dedup_rows import (
    DEFAULT_MEMORY,
    DedupParameters,
    canonicalisation,
    data_tables,
    headline,
    write_survivors,
)
from tokctl.stages.documents import document_parts, documents_input, rejects_of


class DedupExactParameters(DedupParameters):
    """Parameters of ``dedup exact``."""

    hash: Literal["xxh3-128", "sha256"] = param(
        "xxh3-128", help="Hash of the canonical text; equal hashes are verified by comparing the texts."
    )
    nfc: bool = param(False, help="Compare in Unicode's NFC.")
    fold_case: bool = param(False, help="Compare without case.")
    collapse_space: bool = param(False, help="Compare with each run of white space as one space, none at the ends.")
    zero_digits: bool = param(False, help="Compare with every decimal digit as 0.")
    drop_punctuation: bool = param(False, help="Compare without punctuation.")


def run(stage_run: StageRun) -> None:
    """Find clusters of equal canonical texts and keep one document of each."""
    from tokctl.corpus.dedup.document_rows import DocumentRows
    from tokctl.corpus.dedup.exact import ExactSettings, find_exact
    from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule

    parameters = stage_run.parameters
    settings = ExactSettings(canonicalisation(parameters), parameters.hash, parameters.empty)
    rule = SurvivorRule.parse(parameters.keep)
    with rejects_of(stage_run) as rejects:
        parts = document_parts(stage_run, "input", rejects.add)
        documents = DocumentRows.from_parquet(parts)
        with stage_run.phase("hash texts", documents.n_rows, "documents") as update:
            duplicates, n_collisions = find_exact(
                documents,
                settings,
                scratch=stage_run.work_directory,
                memory_limit=stage_run.memory_limit or DEFAULT_MEMORY,
                workers=stage_run.workers,
                on_step=lambda done, total: update(done),
            )
        clusters = Clusters(documents, duplicates, rule, drop_empty=parameters.empty == "drop")
        write_survivors(stage_run, parts, documents, clusters, rejects, "exact-duplicate", "dedup exact")
    stage_run.facts["comparison"] = settings.to_json()
    stage_run.measurements["hash_collisions"] = n_collisions


STAGE = Stage(
    name="dedup exact",
    version=1,
    summary="Remove documents whose canonical text is the same.",
    description=(
        "Remove exact duplicates. Documents are compared by their canonical text (byte for byte, unless options say "
        "otherwise); equal hashes are verified by comparing. clusters.parquet lists who was the same as whom."
    ),
    parameters=DedupExactParameters,
    inputs=(documents_input("Shard directories or raw files."),),
    run=run,
    headline=headline,
    libraries=("pyarrow", "xxhash"),
    data_tables=data_tables,
    examples=("tokctl dedup exact documents -o unique --nfc --collapse-space",),
)

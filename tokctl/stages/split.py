"""``tokctl split``: documents to train, validation and test, so that no group straddles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from tokctl.errors import ArtifactError, UsageError
from tokctl.runtime.parameters import ExactDecimal, Quantity, param
from tokctl.runtime.stage import Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.dedup_rows import CLUSTERS
from tokctl.stages.documents import ReadingParameters, document_parts, documents_input, rejects_of, text_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from tokctl.corpus.split import Shares


class SplitParameters(ReadingParameters):
    """Parameters of ``split``."""

    validation: ExactDecimal = param(Decimal("0.05"), help="Fraction of the groups for validation.", ge=0, le=1)
    test: ExactDecimal = param(Decimal("0.05"), help="Fraction of the groups for test.", ge=0, le=1)
    count_validation: Quantity | None = param(None, help="A number instead of a fraction (not addition-stable).", ge=0)
    count_test: Quantity | None = param(None, help="A number instead of a fraction (not addition-stable).", ge=0)
    count: Literal["groups", "documents"] = param("groups", help="What the numbers are of.")
    group_by: str = param(
        "group_id",
        help="What stays together: a column, meta.FIELD, or COLUMN~REGEX (its first group).",
        metavar="KEY",
    )
    stratify_by: str | None = param(None, help="Take the fractions within each value of this column.", metavar="COLUMN")
    seed: int = param(0, help="Another seed gives another split.", ge=0, lt=1 << 53)
    shard_bytes: Quantity = param(256_000_000, help="Text in one output shard.", ge=1, metavar="SIZE")


def shares_of(parameters: Any) -> Shares:
    """How much validation and test get."""
    from tokctl.corpus.split import Shares

    numbers = (parameters.count_validation, parameters.count_test)
    if numbers == (None, None):
        return Shares.fractions(str(parameters.validation), str(parameters.test))
    return Shares.counts(numbers[0] or 0, numbers[1] or 0, parameters.count)


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """Refuse unusable shares and cluster directories before reading."""
    from tokctl.corpus.group_keys import GroupBy

    shares_of(parameters)
    GroupBy.parse(parameters.group_by)
    for item in inputs["clusters"]:
        if not any(file.name == CLUSTERS for file in item.files):
            raise ArtifactError(f"{item.argument} holds no {CLUSTERS}", code="no-clusters", file=item.argument)
    for item in inputs["input"]:
        if item.manifest is not None and item.manifest.stage == "split":
            raise UsageError(
                f"{item.argument} is already a split; splitting it again would mix its roles",
                hint="split the documents it was made from",
                code="split-again",
            )


def run(stage_run: StageRun) -> None:
    """Plan the split (reading keys first where counts, strata or clusters need them), then write each role's shards."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tokctl.corpus.group_keys import GroupBy
    from tokctl.corpus.release import RoleStatistics, release_hash
    from tokctl.corpus.shards import ShardWriter, part_errors, read_part
    from tokctl.corpus.split import ROLES, SplitPlanner

    parameters = stage_run.parameters
    tables = []
    for file in (file for item in stage_run.inputs["clusters"] for file in item.files if file.name == CLUSTERS):
        with part_errors(file.path):
            tables.append(pq.read_table(file.path))
    planner = SplitPlanner(
        GroupBy.parse(parameters.group_by),
        shares_of(parameters),
        parameters.seed,
        stratify_by=parameters.stratify_by,
        clusters=pa.concat_tables(tables) if tables else None,
    )
    with rejects_of(stage_run) as rejects:
        parts = document_parts(stage_run, "input", rejects.add)
    schema = text_schema(parts)
    n_rows = 0
    for part in parts:
        with part_errors(part):
            n_rows += pq.read_metadata(part).num_rows

    def batches(columns: list[str], phase: str) -> Iterator[pa.RecordBatch]:
        done = 0
        with stage_run.phase(phase, n_rows, "documents") as update:
            for part in parts:
                for batch in read_part(part, columns):
                    yield batch
                    done += batch.num_rows
                    update(done)

    if planner.needs_scan:
        for batch in batches(planner.columns, "read keys"):
            planner.scan(batch)
    plan = planner.finish()
    statistics = {role: RoleStatistics() for role in ROLES}
    writers = {role: ShardWriter(stage_run.directory / role, schema, parameters.shard_bytes) for role in ROLES}
    for batch in batches(schema.names, "split"):
        roles, groups = plan.assign(batch)
        for code, role in enumerate(ROLES):
            chosen = pa.array(roles == code)
            if chosen.true_count:
                rows = batch.filter(chosen)
                writers[role].write(rows)
                statistics[role].add(rows, groups[roles == code])
    for role, writer in writers.items():
        for shard in writer.close():
            stage_run.add_output(f"{role}/{shard.name}", rows=shard.rows, sha256=shard.sha256)
    records = {role: statistics[role].record() for role in ROLES}
    stage_run.rows_in = n_rows + stage_run.rows_rejected
    stage_run.rows_out = sum(record.documents for record in records.values())
    report = dict(plan.report)
    stage_run.facts |= {
        "release": release_hash(records),
        "roles": {role: record.to_json() for role, record in records.items()},
        **report,
    }
    if not report["addition_stable"]:
        stage_run.log("this split isn't addition-stable: documents added later can move others between roles")
    moved = report.get("documents_moved_by_joins")
    if moved:
        stage_run.log(f"{moved:,} documents changed sides because a cluster joined their group with another")


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    lines = [
        f"{role}: {record['documents']:,} documents in {record['groups']:,} groups, {record['bytes']:,} bytes"
        for role, record in facts["roles"].items()
    ]
    return [*lines, f"corpus release {facts['release'][:16]}"]


STAGE = Stage(
    name="split",
    version=1,
    summary="Assign documents to train, validation and test by group.",
    description=(
        "Assign each group of documents to train, validation or test by a hash of its key, so that translations, "
        "branches and near duplicates never straddle. Fractions are addition-stable; counts, strata and clusters are not. "
        "Writes DIR/train, DIR/validation and DIR/test, and the corpus release hash in the manifest."
    ),
    parameters=SplitParameters,
    inputs=(
        documents_input("Shard directories or raw files."),
        Input(
            "clusters",
            "A dedup output whose clusters join groups (repeatable).",
            option="--clusters",
            required=False,
            many=True,
            accepts=("dedup exact", "dedup minhash"),
            is_set=True,
            metavar="DIR",
        ),
    ),
    run=run,
    headline=headline,
    check=check,
    libraries=("pyarrow",),
    examples=("tokctl split deduplicated -o split --validation 0.05 --test 0.05 --group-by meta.article",),
)

"""What the two deduplication stages share: parameters, and writing survivors, clusters and rejects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tokctl.runtime.parameters import ExactDecimal, Quantity, param
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.documents import ReadingParameters, text_schema, write_documents

if TYPE_CHECKING:
    from tokctl.corpus.dedup.canonical import Canonicalisation
    from tokctl.corpus.dedup.document_rows import DocumentRows
    from tokctl.corpus.dedup.survivors import Clusters
    from tokctl.corpus.rejects import RejectWriter

CLUSTERS = "clusters.parquet"
DEFAULT_MEMORY = 1 << 30


class DedupParameters(ReadingParameters):
    """Parameters that both deduplication stages take."""

    keep: str = param(
        "longest",
        help="Which document of a cluster survives: longest, lowest-id or source-priority=A,B,...; ties: lowest doc_id.",
        metavar="RULE",
    )
    empty: Literal["keep", "drop"] = param(
        "keep", help="A document of which canonicalisation leaves nothing: compared by its own bytes, or rejected."
    )
    all_clusters: bool = param(False, help="List every document in clusters.parquet, also those that are alone.")
    max_cluster_size: Quantity | None = param(None, help="Fail when a cluster is larger.", ge=1, metavar="N")
    max_source_removal: ExactDecimal | None = param(
        None, help="Fail when a larger share (0..1) of a source would be removed.", ge=0, le=1, metavar="SHARE"
    )
    min_source_documents: Quantity = param(20, help="Smaller sources aren't looked at for that.", ge=1, metavar="N")
    shard_bytes: Quantity = param(256_000_000, help="Text in one output shard.", ge=1, metavar="SIZE")


def canonicalisation(parameters: Any) -> Canonicalisation:
    """What comparison ignores, from the stage's flags."""
    from tokctl.corpus.dedup.canonical import Canonicalisation

    return Canonicalisation(
        nfc=parameters.nfc,
        fold_case=parameters.fold_case,
        collapse_space=parameters.collapse_space,
        zero_digits=parameters.zero_digits,
        drop_punctuation=parameters.drop_punctuation,
    )


def data_tables(parameters: Any) -> dict[str, str]:
    """The Unicode version of the canonicalisation."""
    from tokctl.corpus.dedup.canonical import UNICODE_VERSION

    return {"unicode": UNICODE_VERSION}


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    lines = [
        f"{facts['clusters']:,} clusters, the largest of {facts['largest_cluster']:,}; {facts['duplicates']:,} duplicates removed"
    ]
    for name, source in facts["removed_by_source"].items():
        if source["removed"]:
            lines.append(f"{name}: {source['removed']:,} of {source['documents']:,} removed")
    return lines


def write_survivors(
    stage_run: StageRun,
    parts: list[Path],
    documents: DocumentRows,
    clusters: Clusters,
    rejects: RejectWriter,
    reason: str,
    stage: str,
) -> None:
    """Check the alarms, then write survivors as shards, clusters and rejects, and the facts that both stages tell."""
    import pyarrow.parquet as pq

    from tokctl.corpus.dedup.limits import Limits, alarms, refuse
    from tokctl.corpus.documents import CLUSTER_SCHEMA

    parameters = stage_run.parameters
    by_source = clusters.removed_by_source()
    share = parameters.max_source_removal
    limits = Limits(
        parameters.max_cluster_size, None if share is None else float(share), parameters.min_source_documents
    )
    refuse(alarms(limits, clusters.statistics["largest_cluster"], by_source))
    schema = text_schema(parts)
    survivors = (batch for _, batch in documents.batches(schema.names, clusters.survives))
    n_out = write_documents(stage_run, survivors, schema, parameters.shard_bytes)
    n_clustered = 0
    with pq.ParquetWriter(stage_run.directory / CLUSTERS, CLUSTER_SCHEMA, compression="zstd") as writer:
        for batch in clusters.cluster_batches(all_documents=parameters.all_clusters):
            writer.write_batch(batch)
            n_clustered += batch.num_rows
    stage_run.add_output(CLUSTERS, rows=n_clustered)
    rejects.add_batches(clusters.reject_batches(stage, reason))
    stage_run.rows_in = documents.n_rows + stage_run.rows_rejected
    stage_run.rows_out = n_out
    stage_run.rows_rejected = stage_run.rows_in - n_out
    stage_run.facts |= clusters.statistics
    stage_run.facts["removed_by_source"] = {
        name: {"documents": total, "removed": gone} for name, (total, gone) in by_source.items()
    }
    if stage_run.rows_rejected != rejects.n_rejects:
        raise AssertionError(
            f"{stage_run.rows_rejected} documents are missing, {rejects.n_rejects} are listed as rejected"
        )

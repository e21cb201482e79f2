"""``tokctl dedup minhash``: one of several near-duplicate documents survives; every pair is verified exactly."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from tokctl.runtime.parameters import ExactDecimal, Quantity, param
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

if TYPE_CHECKING:
    from tokctl.corpus.dedup.near import NearSettings


class DedupMinhashParameters(DedupParameters):
    """Parameters of ``dedup minhash``."""

    threshold: ExactDecimal = param(
        Decimal("0.8"), help="Documents of this Jaccard similarity or more are similar.", gt=0, le=1
    )
    recall: ExactDecimal = param(
        Decimal("0.99"), help="Share of the pairs at the threshold that candidates must include.", gt=0, le=1
    )
    num_perm: Quantity = param(128, help="Values in a signature.", ge=1)
    seed: int = param(1, help="Seed of the permutations.", ge=0, lt=1 << 32)
    scheme: Literal["affine32", "affine64", "legacy"] = param("affine32", help="Permutation scheme of datasketch.")
    hash: Literal["xxh3", "sha1"] = param("xxh3", help="Hash of a shingle; sha1 is datasketch's.")
    shingle: Literal["auto", "word", "character"] = param(
        "auto", help="Shingles of words or characters; auto: characters where the script has no spaces."
    )
    n_words: int = param(5, help="Words in a shingle.", ge=1, le=1000)
    n_characters: int = param(4, help="Characters in a shingle.", ge=1, le=1000)
    survivors: Literal["similar", "one"] = param(
        "similar",
        help="Of a cluster: remove what is itself similar to a kept document, or keep exactly one, whatever the chain.",
    )
    max_failures: Quantity = param(
        500, help="A document that met so many dissimilar ones in one bucket is compared no further there.", ge=1
    )
    nfc: bool = param(True, help="Compare in Unicode's NFC.")
    fold_case: bool = param(True, help="Compare without case.")
    collapse_space: bool = param(True, help="Compare with each run of white space as one space, none at the ends.")
    zero_digits: bool = param(False, help="Compare with every decimal digit as 0.")
    drop_punctuation: bool = param(True, help="Compare without punctuation.")


def settings_of(parameters: Any) -> NearSettings:
    """The room's settings."""
    from tokctl.corpus.dedup.minhash import SignatureScheme
    from tokctl.corpus.dedup.near import NearSettings
    from tokctl.corpus.dedup.shingling import Shingling

    return NearSettings(
        threshold=float(parameters.threshold),
        recall=float(parameters.recall),
        signature=SignatureScheme(parameters.scheme, parameters.num_perm, parameters.seed, parameters.hash),
        shingling=Shingling(parameters.shingle, parameters.n_words, parameters.n_characters),
        canonicalisation=canonicalisation(parameters),
        empty=parameters.empty,
        keep=parameters.survivors,
        max_failures=parameters.max_failures,
    )


def run(stage_run: StageRun) -> None:
    """Sketch, group, verify, unite, and keep one document of each cluster."""
    from tokctl.corpus.dedup.document_rows import DocumentRows
    from tokctl.corpus.dedup.near import NearDuplicateSearch
    from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule

    parameters = stage_run.parameters
    settings = settings_of(parameters)
    rule = SurvivorRule.parse(parameters.keep)
    plan = settings.bands
    stage_run.log(
        f"{plan.n_bands} bands of {plan.n_rows} rows; recall by similarity: "
        + ", ".join(f"{s:.2f} {r:.4f}" for s, r in plan.s_curve() if s >= 0.5),
        bands=plan.n_bands,
        rows=plan.n_rows,
    )
    with rejects_of(stage_run) as rejects:
        parts = document_parts(stage_run, "input", rejects.add)
        documents = DocumentRows.from_parquet(parts)
        with stage_run.phase("sketch", documents.n_rows, "documents") as update:
            search = NearDuplicateSearch(
                documents,
                settings,
                scratch=stage_run.work_directory,
                memory_limit=stage_run.memory_limit or DEFAULT_MEMORY,
                workers=stage_run.workers,
                on_step=lambda done, total: update(done),
            )
            with search:
                clusters = Clusters(documents, search.run(), rule, drop_empty=parameters.empty == "drop")
                n_chained = search.measure(clusters)
        write_survivors(stage_run, parts, documents, clusters, rejects, "near-duplicate", "dedup minhash")
    work = search.work
    stage_run.facts |= {
        "comparison": settings.to_json(),
        "by_word": work.by_word,
        "by_character": work.by_character,
        "too_short_compared_exactly": work.too_short,
        "candidates": work.candidates,
        "below_threshold_to_survivor": n_chained,
    }
    stage_run.measurements |= asdict(work)
    if work.skipped_pairs:
        stage_run.warn(
            f"{work.skipped_pairs:,} pairs were left uncompared in crowded buckets (--max-failures {parameters.max_failures})"
        )
    if work.too_short:
        stage_run.log(f"{work.too_short:,} documents are shorter than one shingle: they were compared exactly only")


STAGE = Stage(
    name="dedup minhash",
    version=1,
    summary="Remove near-duplicate documents, verified exactly.",
    description=(
        "Remove near duplicates. MinHash signatures (equal to datasketch's) find candidates with the target recall at the "
        "threshold; the exact Jaccard similarity of the shingle sets decides. Documents shorter than a shingle are "
        "compared exactly. clusters.parquet lists the clusters and similarities."
    ),
    parameters=DedupMinhashParameters,
    inputs=(documents_input("Shard directories or raw files."),),
    run=run,
    headline=headline,
    libraries=("pyarrow", "xxhash", "datasketch"),
    data_tables=data_tables,
    examples=("tokctl dedup minhash unique -o deduplicated --threshold 0.8",),
)

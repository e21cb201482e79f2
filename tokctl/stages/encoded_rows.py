"""Reading what ``encode`` wrote, in either form, a document at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tokctl.artifacts.digests import DigestCache
from tokctl.artifacts.manifest import Manifest
from tokctl.errors import ArtifactError, DataError
from tokctl.runtime.inputs import resolve_argument
from tokctl.runtime.stage import Input

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_BATCH_ROWS = 256
_BLOCK_IDS = 1 << 24


def encoded_rows(argument: str) -> Iterator[tuple[int, str | None, np.ndarray]]:
    """(row, doc_id, ids) of encoded documents: an output of ``encode``, checked against its manifest, or one Parquet file."""
    path = Path(argument)
    if not path.is_dir():
        yield from _parquet_rows([path])
        return
    slot = Input("rows", "the output of encode, or a file of rows", accepts=("encode",))
    resolved = resolve_argument(slot, argument, {}, DigestCache())
    if resolved.manifest is not None and resolved.manifest.facts.get("output_format") == "flat":
        from tokctl.corpus.encoded_ids import load_ids

        flat = load_ids(resolved.root)
        for row, doc_id in enumerate(flat.doc_ids()):
            yield row, doc_id, flat.document(row)
        return
    yield from _parquet_rows([file.path for file in resolved.files if file.name != "rejects.parquet"])


def check_encoded(directory: Path, manifest: Manifest) -> None:
    """Read the output of ``encode`` again; ArtifactError where ids, rows and manifest don't fit together."""
    import numpy as np

    from tokctl.corpus.encoded_ids import DOCUMENTS_NAME, load_ids
    from tokctl.corpus.shards import read_shards

    is_flat = manifest.facts.get("output_format") == "flat"
    rows = n_tokens = 0
    largest = -1
    if is_flat:
        flat = load_ids(directory)
        offsets = np.asarray(flat.offsets)
        for batch in read_shards(directory / DOCUMENTS_NAME, ["n_tokens"]):
            lengths = np.diff(offsets[rows : rows + batch.num_rows + 1])
            if not np.array_equal(lengths, batch.column("n_tokens").to_numpy()):
                raise _misfit(directory, f"documents from row {rows} on have other lengths in offsets.bin")
            rows += batch.num_rows
        n_tokens = len(flat.ids)
        for first in range(0, n_tokens, _BLOCK_IDS):
            largest = max(largest, int(flat.ids[first : first + _BLOCK_IDS].max()))
        if rows != len(flat):
            raise _misfit(directory, f"{rows} rows of documents, {len(flat)} in offsets.bin")
    else:
        for batch in read_shards(directory, ["ids", "n_tokens"]):
            ids = batch.column("ids")
            values = ids.flatten().to_numpy()
            if not np.array_equal(ids.value_lengths().to_numpy(), batch.column("n_tokens").to_numpy()):
                raise _misfit(directory, f"n_tokens is wrong in the rows from {rows} on")
            rows += batch.num_rows
            n_tokens += len(values)
            largest = max(largest, int(values.max(initial=0))) if len(values) else largest
    found = {"n_tokens": str(n_tokens), "largest_id": largest, "rows_out": rows}
    declared = {name: manifest.facts[name] for name in ("n_tokens", "largest_id")}
    declared["rows_out"] = manifest.counts["rows_out"]
    if found != declared or largest >= manifest.facts["vocab_size"]:
        raise _misfit(
            directory, f"found {found}, declared {declared} of a vocabulary of {manifest.facts['vocab_size']}"
        )


def _misfit(directory: Path, what: str) -> ArtifactError:
    return ArtifactError(what, hint="encode again with --force", code="damaged-ids", file=str(directory))


def _parquet_rows(files: list[Path]) -> Iterator[tuple[int, str | None, np.ndarray]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = 0
    for file in files:
        try:
            parquet = pq.ParquetFile(file)
            names = [name for name in ("doc_id", "ids") if name in parquet.schema_arrow.names]
            kind = parquet.schema_arrow.field("ids").type if "ids" in names else None
            if kind is None or not _is_list_of_integers(kind):
                raise DataError(
                    f"{file} has no column 'ids' of integer lists",
                    hint=f"columns found: {', '.join(parquet.schema_arrow.names)}",
                    code="no-ids",
                    file=str(file),
                )
            for batch in parquet.iter_batches(_BATCH_ROWS, columns=names):
                doc_ids = batch.column("doc_id").to_pylist() if "doc_id" in names else [None] * batch.num_rows
                for doc_id, ids in zip(doc_ids, batch.column("ids"), strict=True):
                    if ids.values is None or ids.values.null_count:
                        raise DataError(
                            f"{file}: row {row} has a null id", hint="ids are integers", code="no-ids", row=row
                        )
                    yield row, doc_id, ids.values.to_numpy(zero_copy_only=False)
                    row += 1
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"can't read {file}: {error}", hint="encode again with -o", code="unreadable", file=str(file)
            ) from None


def _is_list_of_integers(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_integer(kind.value_type)

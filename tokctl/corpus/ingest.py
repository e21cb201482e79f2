"""Reading raw files: from a list of files to document rows and rejects, in order, each record giving exactly one.

``read_records`` is the heart; ``iter_batches`` turns its documents into Arrow batches for any consumer (count, fit, encode read
raw files through it exactly as ``extract`` does). ``extract_tasks`` builds the stage from it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tokctl.artifacts.canonical import canonical_json
from tokctl.corpus import language_tags
from tokctl.corpus.byte_stream import BrokenStream, ByteStream, open_stream
from tokctl.corpus.document_ids import IdRegister
from tokctl.corpus.documents import DOCUMENT_SCHEMA, Reject
from tokctl.corpus.extractors.process import Extracted, NotExtracted, PageSource, shared_process
from tokctl.corpus.file_formats import file_format
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers import READERS
from tokctl.corpus.readers.text import undecodable
from tokctl.corpus.reading_report import ReadingReport
from tokctl.corpus.records import Document, Page, Record, reject
from tokctl.corpus.text_encoding import Undecodable
from tokctl.errors import DataError, UsageError

_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 4096
_PAGES = 64
_PAGE_BYTES = 2 << 20
OnReject = Callable[[Reject], None]


def document_schema(errors: str) -> pa.Schema:
    """DOCUMENT_SCHEMA, with a binary text column under ``errors="bytes"``."""
    if errors != "bytes":
        return DOCUMENT_SCHEMA
    index = DOCUMENT_SCHEMA.get_field_index("text")
    return DOCUMENT_SCHEMA.set(index, pa.field("text", pa.large_binary(), nullable=False))


def read_records(files: Iterable[InputFile], options: ReadOptions) -> Iterator[Document | Reject]:
    """Every record of ``files`` in order, pages extracted. Raises DataError where the options say stop, or a file can't be read."""
    pipeline = _Pipeline(options)
    waiting: list[Record] = []
    n_pages = size = 0
    records = _raw_records(files, options)
    trouble: DataError | None = None
    while True:
        try:
            record = next(records, None)
        except DataError as error:
            trouble = error  # what came before it, and may hold an earlier error, is finished first
            break
        if record is None:
            break
        if not waiting and not pipeline.is_busy and not isinstance(record, Page):
            yield record
            continue
        waiting.append(record)
        n_pages += isinstance(record, Page)
        size += _raw_size(record)
        if n_pages >= _PAGES or size >= _PAGE_BYTES or len(waiting) >= _BATCH_ROWS:
            yield from pipeline.exchange(waiting)
            waiting, n_pages, size = [], 0, 0
    yield from pipeline.exchange(waiting)
    yield from pipeline.exchange([])
    if trouble is not None:
        raise trouble


def _raw_size(record: Record) -> int:
    if isinstance(record, Reject):
        return 0
    return len((record.document if isinstance(record, Page) else record).raw)


class _Pipeline:
    """Keeps the extraction process busy with one batch while the next is being read."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._busy: list[Record] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    def exchange(self, batch: list[Record]) -> Iterator[Document | Reject]:
        """Begin with ``batch``; give the records of the one before."""
        finished = self._busy
        results: Iterator[Extracted | NotExtracted] = iter(())
        if any(isinstance(record, Page) for record in finished):
            results = iter(shared_process(self._options).collect())
        self._busy = batch
        pages = [PageSource(r.document.raw, r.charset) for r in batch if isinstance(r, Page)]
        if pages:
            shared_process(self._options).submit(pages)
        for record in finished:
            yield _extracted(record, next(results), self._options) if isinstance(record, Page) else record


def _raw_records(files: Iterable[InputFile], options: ReadOptions) -> Iterator[Record]:
    for file in files:
        with open_stream(file.path, options) as stream:
            try:
                yield from _read_one(file, stream, options)
            except BrokenStream as error:
                yield reject(file, error.reason, error.evidence, offset=error.offset)


def _read_one(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    name = file_format(file, stream, options)
    if name == "binary":
        yield reject(file, "binary-file", "neither the name nor the first bytes are those of text")
        return
    module, _, function = READERS[name].partition(":")
    yield from getattr(importlib.import_module(module), function)(file, stream, options)


def _extracted(page: Page, result: Extracted | NotExtracted, options: ReadOptions) -> Document | Reject:
    document = page.document
    if isinstance(result, NotExtracted):
        if result.encoding is not None:
            trouble = Undecodable(result.encoding, result.offset or 0, result.found)
            return undecodable(document.file, trouble, options, own_id=document.own_id)
        return reject(document.file, result.reason, result.evidence, own_id=document.own_id)
    meta = document.meta | {
        "encoding": result.encoding,
        "encoding_origin": result.encoding_origin,
        "extractor": options.extractor,
    }
    if result.note is not None:
        meta["extraction"] = result.note
    if not result.text.strip():
        return reject(
            document.file, "no-text", f"{options.extractor} finds no text on the page", own_id=document.own_id
        )
    language = document.language
    tag = language_tags.html_language(result.language)
    if page.takes_html_language and tag is not None:
        language = tag, "html-lang"
    return document._replace(
        text=result.text,
        language=language,
        meta=meta,
        n_invalid=result.n_invalid,
        first_invalid=result.first_invalid,
    )


def iter_batches(
    files: Iterable[InputFile],
    options: ReadOptions,
    columns: Sequence[str] = ("text",),
    *,
    on_reject: OnReject | None = None,
    report: ReadingReport | None = None,
) -> Iterator[pa.RecordBatch]:
    """The documents of raw files as Arrow batches of bounded size (about 8 MiB, or one document) with ``columns``.

    ``columns`` are names of DOCUMENT_SCHEMA. ``text`` is large_string, large_binary under ``errors="bytes"``. Each reject goes to
    ``on_reject``; without one it is raised as a DataError, so that nothing is lost silently. ``report`` is told what was mended.
    """
    schema = document_schema(options.errors)
    unknown = sorted(set(columns) - set(schema.names))
    if unknown:
        raise UsageError(
            f"documents have no column {unknown[0]!r}",
            hint=f"there are {', '.join(schema.names)}",
            code="unknown-column",
        )
    register = IdRegister() if "doc_id" in columns else None
    wanted = pa.schema([schema.field(name) for name in columns])
    for group in document_groups(read_records(files, options), on_reject, report):
        yield to_arrow(group, wanted, register)


def document_groups(
    records: Iterable[Document | Reject], on_reject: OnReject | None, report: ReadingReport | None = None
) -> Iterator[list[Document]]:
    """The documents among ``records`` in lists of about 8 MiB of text; rejects go to ``on_reject`` or are raised."""
    report = ReadingReport() if report is None else report
    group: list[Document] = []
    size = 0
    for record in records:
        if isinstance(record, Reject):
            if on_reject is None:
                raise reject_error(record)
            report.add_reject(record)
            on_reject(record)
            continue
        if record.n_invalid:
            report.add_mended(record)
        group.append(record)
        size += len(record.text)
        if size >= _BATCH_BYTES or len(group) >= _BATCH_ROWS:
            yield group
            group, size = [], 0
    if group:
        yield group


def reject_error(record: Reject) -> DataError:
    """A reject as an error, for callers that can't drop a document."""
    return DataError(
        f"{record.source}/{record.uri}: {record.evidence}",
        hint="mend the input, leave such records out with --errors skip, or have them listed by writing to a directory (-o)",
        code=record.reason, file=f"{record.source}/{record.uri}", row=record.row, offset=record.offset,
    )  # fmt: skip


def to_arrow(documents: Sequence[Document], schema: pa.Schema, register: IdRegister | None) -> pa.RecordBatch:
    """A batch with the columns of ``schema``: those of documents, or ``own_id``. ``register`` is needed for ``doc_id``."""
    if register is not None or "sha256_text" in schema.names:
        digests = [hashlib.sha256(d.text).hexdigest() for d in documents]
    arrays = []
    for field in schema:
        values: list[Any]
        if field.name == "text":
            # the texts are known to be valid UTF-8: a view instead of a second check
            arrays.append(pa.array([d.text for d in documents], pa.large_binary()).view(field.type))
            continue
        if field.name == "doc_id":
            assert register is not None
            values = register.assign(
                [d.file.source for d in documents],
                [d.file.uri for d in documents],
                [d.own_id for d in documents],
                digests,
            )
        elif field.name == "sha256_text":
            values = digests
        elif field.name == "sha256_raw" and "sha256_text" in schema.names:
            values = [
                digest if d.raw is d.text else hashlib.sha256(d.raw).hexdigest()
                for d, digest in zip(documents, digests, strict=True)
            ]
        else:
            values = [_GETTERS[field.name](d) for d in documents]
        arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_GETTERS: dict[str, Callable[[Document], str | None]] = {
    "own_id": lambda d: d.own_id,
    "source": lambda d: d.file.source,
    "uri": lambda d: d.file.uri,
    "language": lambda d: d.language[0],
    "license": lambda d: d.license,
    "group_id": lambda d: d.group_id,
    "sha256_raw": lambda d: hashlib.sha256(d.raw).hexdigest(),
    "meta": lambda d: _meta(_facts(d) | d.meta),
}


def _meta(meta: dict[str, Any]) -> str:
    # most documents of a file say the same; only strings are cached, since 1 and True are one key
    if all(type(value) is str for value in meta.values()):
        return _meta_of_strings(tuple(meta.items()))
    return canonical_json(meta).decode()


@functools.lru_cache(maxsize=1024)
def _meta_of_strings(items: tuple[tuple[str, str], ...]) -> str:
    return canonical_json(dict(items)).decode()


def _facts(document: Document) -> dict[str, Any]:
    """What ``meta`` says of every document; a field of the record that is called the same goes before it."""
    facts: dict[str, Any] = {"language_origin": document.language[1]}
    if document.n_invalid:
        facts["n_invalid"] = document.n_invalid
    return facts

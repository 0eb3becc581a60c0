"""Write references and releases to Parquet files, and read them back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from homing._extras import load_extra
from homing._io.files import report_write_errors
from homing.codebooks import Codebook
from homing.collection._transfer import CHUNK, PhotoRow, ReleaseRecord, Transfer
from homing.errors import CollectionError

PHOTOS, RELEASES = "photos.parquet", "releases.parquet"
_FINGERPRINT, _LAST_ID, _DISTRACTORS = b"homing.codebook", b"homing.last_id", b"homing.distractors"


def write_parquet(catalog: Transfer, codebook: Codebook, distractor_count: int, folder: Path) -> int:
    """Write all references and releases into a folder. Returns the number of references."""
    arrow, count, schema = _arrow(), 0, _photos_schema(codebook)
    metadata = {_LAST_ID: str(catalog.last_id()), _DISTRACTORS: str(distractor_count)}
    with _table_writer(folder / PHOTOS, schema.with_metadata({**schema.metadata, **metadata})) as write:
        for rows in catalog.photos(codebook):
            *texts, codes, vectors = (list(column) for column in zip(*rows, strict=True))
            numbers = arrow.array(np.frombuffer(b"".join(vectors), np.float16))
            descriptors = arrow.FixedSizeListArray.from_arrays(numbers, codebook.dim)
            write([*texts, arrow.array(codes, arrow.binary(codebook.code_size)), descriptors])
            count += len(rows)
    with _table_writer(folder / RELEASES, _releases_schema(codebook)) as write:
        for releases in catalog.releases():
            *columns, vectors = (list(column) for column in zip(*releases, strict=True))
            write([*columns, [None if vector is None else np.frombuffer(vector, np.float16) for vector in vectors]])
    return count


def read_counts(folder: Path) -> tuple[int, int]:
    """The largest id ever assigned in the collection, and its number of distractors."""
    path = folder / PHOTOS
    with _open(path) as file:
        metadata = file.schema_arrow.metadata or {}
    if not {_LAST_ID, _DISTRACTORS} <= metadata.keys():
        raise CollectionError(f"{path} was not written by homing export, or was changed since; export it again")
    return int(metadata[_LAST_ID]), int(metadata[_DISTRACTORS])


def read_photos(folder: Path, codebook: Codebook) -> Iterator[list[PhotoRow]]:
    """Yield batches of the references that `write_parquet` wrote. Rejects references of another codebook."""
    for batch in _batches(folder / PHOTOS, _photos_schema(codebook), codebook):
        *columns, descriptors = batch.columns
        vectors = descriptors.flatten().to_numpy(zero_copy_only=False).reshape(batch.num_rows, -1)
        columns.append([vector.tobytes() for vector in vectors.astype(np.float16)])
        yield [
            PhotoRow(*row)
            for row in zip(*(each if isinstance(each, list) else each.to_pylist() for each in columns), strict=True)
        ]


def read_releases(folder: Path, codebook: Codebook) -> Iterator[list[ReleaseRecord]]:
    """Yield batches of the releases that `write_parquet` wrote."""
    for batch in _batches(folder / RELEASES, _releases_schema(codebook), codebook):
        rows = (ReleaseRecord(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        yield [row._replace(vector=row.vector and np.array(row.vector, np.float16).tobytes()) for row in rows]


def _arrow() -> Any:
    load_extra("pyarrow.parquet", "export")
    return load_extra("pyarrow", "export")


def _schema(names: Sequence[str], kinds: Sequence[Any], codebook: Codebook, *, nullable: Sequence[str] = ()) -> Any:
    """A schema with these columns. The last column is a descriptor."""
    arrow = _arrow()
    fields = [
        arrow.field("descriptor" if name == "vector" else name, kind, nullable=name in nullable)
        for name, kind in zip(names, (*kinds, arrow.list_(arrow.float16(), codebook.dim)), strict=True)
    ]
    return arrow.schema(fields, metadata={_FINGERPRINT: codebook.fingerprint.encode()})


def _photos_schema(codebook: Codebook) -> Any:
    arrow = _arrow()
    kinds = (arrow.int64(), *4 * (arrow.string(),), arrow.binary(codebook.code_size))
    return _schema(PhotoRow._fields, kinds, codebook)


def _releases_schema(codebook: Codebook) -> Any:
    arrow = _arrow()
    text, real = arrow.string(), arrow.float64()
    kinds = (arrow.int64(), text, text, text, text, real, real, real, text, arrow.int64(), text)
    return _schema(ReleaseRecord._fields, kinds, codebook, nullable=("reason", "vector"))


@contextmanager
def _table_writer(path: Path, schema: Any) -> Iterator[Any]:
    """Open a new file, and give a function that appends rows, passed as columns."""
    arrow = _arrow()
    with report_write_errors(path), path.open("xb") as file:
        with arrow.parquet.ParquetWriter(file, schema) as writer:
            yield lambda columns: writer.write_batch(
                arrow.record_batch(
                    [
                        column if isinstance(column, arrow.Array) else arrow.array(column, field.type)
                        for column, field in zip(columns, schema, strict=True)
                    ],
                    schema=schema,
                )
            )
        file.flush()
        os.fsync(file.fileno())


def _batches(path: Path, schema: Any, codebook: Codebook) -> Iterator[Any]:
    with _open(path) as file:
        fingerprint = (file.schema_arrow.metadata or {}).get(_FINGERPRINT, b"").decode()
        if fingerprint != codebook.fingerprint:
            raise CollectionError(
                f"{path} holds codes of codebook {fingerprint[:12] or 'unknown'}, but the codebook in its folder is "
                f"'{codebook.name}' ({codebook.fingerprint[:12]}); restore the codebook that was exported with it"
            )
        if not file.schema_arrow.equals(schema):
            differing = [f"{field.name}, {field.type}" for field in schema if field not in list(file.schema_arrow)]
            difference = "; ".join(differing) or "their order"
            raise CollectionError(f"{path} has other columns than codebook '{codebook.name}' needs: {difference}")
        yield from file.iter_batches(CHUNK)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    arrow = _arrow()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            yield file
    except (OSError, arrow.ArrowException) as error:
        raise CollectionError(f"{path} cannot be read or is damaged: {' '.join(str(error).split())}") from error

"""Export a collection to formats that are readable without homing, and import a Parquet export."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from homing._imports import load_extra
from homing._io.files import atomic_folder, report_write_errors, write_atomically
from homing._io.paths import Address, Location, is_inside
from homing.codebooks import Codebook
from homing.codebooks.codebook import as_arrays
from homing.collection.references import StoredReference, StoredRelease
from homing.collection.storage import Parts, Storage, create_storage
from homing.collection.storage.base import CHUNK
from homing.collection.storage.layout import read_codebook, read_distractors
from homing.errors import CollectionError, HomingError, UnknownNameError
from homing.indexes import FaissIndex

PHOTOS, RELEASES = "photos.parquet", "releases.parquet"
_FINGERPRINT, _LAST_ID, _DISTRACTORS = b"homing.codebook", b"homing.last_id", b"homing.distractors"
_README = {
    "parquet": """\
References of a homing collection (photos.parquet: file hash, source, state, code, and the descriptor of the original in
half precision) and their releases (releases.parquet; `photo` is the id of a reference). `codebook` holds the quantizer,
`distractors` the codes of the distractors, if there are any.

To make a collection of it: homing import NEW_COLLECTION THIS_FOLDER
""",
    "faiss": """\
The index of a homing collection, index.faiss, in the format of FAISS. A search returns ids: ids.npy holds all of
them, photos.csv the photo of each. Distances are squared.

```python
import faiss

index = faiss.read_index("index.faiss")
squared, ids = index.search(x, 10)  # of descriptors x: (N, {dim}), unit norm, float32, of the network {extractor}
```
""",
    "arrays": """\
The quantizer of a homing collection as plain arrays, quantizer.npz. The codes of descriptors `x`, (N, {dim}) of unit
norm, float32, of the network {extractor}, are:

```python
import numpy as np

{script}
```
""",
}


@dataclass(frozen=True)
class Export:
    """A finished export: its folder, files, format and number of references."""

    out: Path
    format: str
    photos: int
    files: list[str]


def export_folder(storage: Storage, out: Location, format: str) -> Export:
    """Write the current state of a collection into a new folder. The folder appears complete or not at all."""
    if format not in _WRITERS:
        raise UnknownNameError("format", format, _WRITERS)
    if isinstance(out, Address):
        raise HomingError(f"{out} is not on this machine; export to a folder here, and copy that")
    if is_inside(out, storage.root):
        raise HomingError(f"{out} is inside the collection; choose another folder to export to")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise HomingError(f"{out} exists and is not empty; choose another folder to export to")
    out = Path(os.path.abspath(out))
    try:
        with atomic_folder(out) as draft, closing(storage.reopen()) as reader:
            with reader.read_transaction():
                count, extra = _WRITERS[format](reader, draft)
            values = {"dim": storage.codebook.dim, "extractor": storage.codebook.extractor, **extra}
            write_atomically(draft / "README.md", _README[format].format(**values).encode())
        return Export(out, format, count, sorted(file.name for file in out.iterdir()))
    except OSError as error:
        raise HomingError(f"cannot export to {out}: {error.strerror}") from error


def import_folder(where: Location, export: Location) -> None:
    """Create a collection from a Parquet export."""
    if isinstance(export, Address):
        raise CollectionError(f"{export} is not on this machine; copy the export to a folder here, and import that")
    if not (export / PHOTOS).is_file():
        raise CollectionError(
            f"{export} is not a Parquet export; make one with: homing export COLLECTION --out {export}"
        )
    codebook = read_codebook(export)
    distractors = read_distractors(export, codebook)
    with _open(export / PHOTOS) as file:
        metadata = file.schema_arrow.metadata or {}
    if not {_LAST_ID, _DISTRACTORS} <= metadata.keys():
        raise CollectionError(
            f"{export / PHOTOS} was not written by homing export, or was changed since; export it again"
        )
    last_id, distractor_count = int(metadata[_LAST_ID]), int(metadata[_DISTRACTORS])
    if distractor_count != (0 if distractors is None else len(distractors)):
        raise CollectionError(f"{export} lacks its {distractor_count:,} distractors; restore the file 'distractors'")
    for name, schema in _schemas(codebook).items():
        _check_columns(export / name, schema, codebook)

    def fill(storage: Storage) -> None:
        ids: dict[int, int] = {}  # of the references, by their ids in the export
        for photos in _read_photos(export):
            ids |= zip((row.id for row in photos), storage.insert(photos), strict=True)
        for releases in _read_releases(export):
            if any(row.photo not in ids for row in releases):
                raise CollectionError(
                    f"{export / RELEASES} has releases of references that {PHOTOS} lacks; export it again"
                )
            storage.insert_releases([row._replace(photo=ids[row.photo]) for row in releases])
        storage.reserve_ids(last_id)

    create_storage(where, Parts(codebook, distractors), fill)


def _as_parquet(storage: Storage, draft: Path) -> tuple[int, dict[str, str]]:
    codebook = storage.codebook
    arrow, count, schemas = _arrow(), 0, _schemas(codebook)
    counts = {_LAST_ID: str(storage.last_id()), _DISTRACTORS: str(len(storage.parts.distractor_ids))}
    metadata = {**schemas[PHOTOS].metadata, **counts}
    with _table_writer(draft / PHOTOS, schemas[PHOTOS].with_metadata(metadata)) as write:
        for rows in storage.valid_rows():
            *texts, codes, vectors = (list(column) for column in zip(*rows, strict=True))
            numbers = arrow.array(np.frombuffer(b"".join(vectors), np.float16))
            descriptors = arrow.FixedSizeListArray.from_arrays(numbers, codebook.dim)
            write([*texts, arrow.array(codes, arrow.binary(codebook.code_size)), descriptors])
            count += len(rows)
    with _table_writer(draft / RELEASES, schemas[RELEASES]) as write:
        for releases in storage.releases():
            if releases:
                *columns, vectors = (list(column) for column in zip(*releases, strict=True))
                write([*columns, [None if vector is None else np.frombuffer(vector, np.float16) for vector in vectors]])
    storage.parts.write(draft)
    return count, {}


def _as_faiss(storage: Storage, draft: Path) -> tuple[int, dict[str, str]]:
    numbers: list[int] = []
    csv_file, ids_file = io.StringIO(newline=""), io.BytesIO()
    writer = csv.writer(csv_file)
    writer.writerow(["id", "sha256", "source", "state"])
    index = FaissIndex(storage.codebook)
    for rows in storage.valid_rows():
        writer.writerows(row[:4] for row in rows)
        ids = [row.id for row in rows]
        index.add(np.frombuffer(b"".join(row.code for row in rows), np.uint8).reshape(len(rows), -1), np.array(ids))
        numbers += ids
    write_atomically(draft / "index.faiss", faiss.serialize_index(index.standalone()).tobytes())
    write_atomically(draft / "photos.csv", csv_file.getvalue().encode())
    np.save(ids_file, np.array(numbers, np.int64))
    write_atomically(draft / "ids.npy", ids_file.getvalue())
    return len(index), {}


def _as_arrays(storage: Storage, draft: Path) -> tuple[int, dict[str, str]]:
    arrays, script = as_arrays(storage.codebook)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    write_atomically(draft / "quantizer.npz", file.getvalue())
    return storage.counts()["photos"], {"script": script}


_WRITERS = {"parquet": _as_parquet, "faiss": _as_faiss, "arrays": _as_arrays}


def _read_photos(folder: Path) -> Iterator[list[StoredReference]]:
    """Yield batches of the references that `_as_parquet` wrote."""
    for batch in _batches(folder / PHOTOS):
        *columns, descriptors = batch.columns
        vectors = descriptors.flatten().to_numpy(zero_copy_only=False).reshape(batch.num_rows, -1)
        columns.append([vector.tobytes() for vector in vectors.astype(np.float16)])
        yield [
            StoredReference(*row)
            for row in zip(*(each if isinstance(each, list) else each.to_pylist() for each in columns), strict=True)
        ]


def _read_releases(folder: Path) -> Iterator[list[StoredRelease]]:
    """Yield batches of the releases that `_as_parquet` wrote."""
    for batch in _batches(folder / RELEASES):
        rows = (StoredRelease(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        yield [row._replace(vector=row.vector and np.array(row.vector, np.float16).tobytes()) for row in rows]


def _arrow() -> Any:
    load_extra("pyarrow.parquet", "export")
    return load_extra("pyarrow", "export")


def _schemas(codebook: Codebook) -> dict[str, Any]:
    """The schemas of both tables, by file name. The last column of each is a descriptor."""
    arrow = _arrow()
    number, text, real = arrow.int64(), arrow.string(), arrow.float64()
    kinds = {
        PHOTOS: [number, text, text, text, text, arrow.binary(codebook.code_size)],
        RELEASES: [number, text, text, text, text, real, real, real, text, number, text],
    }
    nullable = {PHOTOS: (), RELEASES: ("reason", "vector")}
    descriptor = arrow.list_(arrow.float16(), codebook.dim)
    return {
        table: arrow.schema(
            [
                arrow.field("descriptor" if name == "vector" else name, kind, nullable=name in nullable[table])
                for name, kind in zip(row._fields, [*kinds[table], descriptor], strict=True)
            ],
            metadata={_FINGERPRINT: codebook.fingerprint.encode()},
        )
        for table, row in ((PHOTOS, StoredReference), (RELEASES, StoredRelease))
    }


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


def _check_columns(path: Path, schema: Any, codebook: Codebook) -> None:
    """Raise an error for a table of another codebook or with other columns."""
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


def _batches(path: Path) -> Iterator[Any]:
    with _open(path) as file:
        yield from file.iter_batches(CHUNK)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    arrow = _arrow()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            yield file
    except (OSError, arrow.ArrowException) as error:
        raise CollectionError(f"{path} cannot be read or is damaged: {' '.join(str(error).split())}") from error

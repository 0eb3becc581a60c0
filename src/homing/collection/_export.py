"""Export a collection to formats that are readable without homing, and import a Parquet export."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np

from homing._io.files import atomic_folder, write_atomically
from homing._io.paths import Address, Location, is_inside
from homing.codebooks import Codebook
from homing.codebooks.arrays import as_arrays
from homing.collection._parquet import read_counts, read_photos, read_releases, write_parquet
from homing.collection._transfer import Transfer
from homing.collection.folder import Folder, create_folder, read_distractors
from homing.errors import CollectionError, HomingError, UnknownNameError
from homing.indexes import FaissIndex

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


def export_folder(folder: Folder, out: Location, format: str) -> Export:
    """Write the current state of a collection into a new folder. The folder appears complete or not at all."""
    if format not in _WRITERS:
        raise UnknownNameError("format", format, _WRITERS)
    if isinstance(out, Address):
        raise HomingError(f"{out} is not on this machine; export to a folder here, and copy that")
    if is_inside(out, folder.root):
        raise HomingError(f"{out} is inside the collection; choose another folder to export to")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise HomingError(f"{out} exists and is not empty; choose another folder to export to")
    out = Path(os.path.abspath(out))
    try:
        with atomic_folder(out) as draft, closing(Transfer(folder.path / "catalog.sqlite")) as catalog:
            with catalog.read_transaction():
                count, extra = _WRITERS[format](folder, catalog, draft)
            values = {"dim": folder.codebook.dim, "extractor": folder.codebook.extractor, **extra}
            write_atomically(draft / "README.md", _README[format].format(**values).encode())
        return Export(out, format, count, sorted(file.name for file in out.iterdir()))
    except OSError as error:
        raise HomingError(f"cannot export to {out}: {error.strerror}") from error


def import_folder(path: Path, export: Path) -> None:
    """Create a collection from a Parquet export. The collection appears complete or not at all."""
    if not (export / "photos.parquet").is_file():
        raise CollectionError(
            f"{export} is not a Parquet export; make one with: homing export COLLECTION --out {export}"
        )
    codebook = Codebook.read(export / "codebook")
    distractors = read_distractors(export, codebook)
    last_id, distractor_count = read_counts(export)
    if distractor_count != (0 if distractors is None else len(distractors)):
        raise CollectionError(f"{export} lacks its {distractor_count:,} distractors; restore the file 'distractors'")

    def fill(draft: Path) -> None:
        with closing(Transfer(draft / "catalog.sqlite")) as catalog:
            for photos in read_photos(export, codebook):
                catalog.insert_photos(photos)
            for releases in read_releases(export, codebook):
                catalog.insert_releases(releases)
            catalog.reserve_ids(last_id)

    create_folder(path, codebook, distractors, fill)


def _as_parquet(folder: Folder, catalog: Transfer, draft: Path) -> tuple[int, dict[str, str]]:
    distractor_count = 0 if folder.distractors is None else len(folder.distractors)
    count = write_parquet(catalog, folder.codebook, distractor_count, draft)
    write_atomically(draft / "codebook", folder.codebook.to_bytes())
    if folder.distractors is not None:
        write_atomically(draft / "distractors", folder.distractors.to_bytes())
    return count, {}


def _as_faiss(folder: Folder, catalog: Transfer, draft: Path) -> tuple[int, dict[str, str]]:
    numbers: list[int] = []
    csv_file = io.StringIO(newline="")
    writer = csv.writer(csv_file)
    writer.writerow(["id", "sha256", "source", "state"])
    for rows in catalog.photos(folder.codebook):  # first, because it raises an error on damaged rows
        writer.writerows(row[:4] for row in rows)
        numbers += [row.id for row in rows]
    index = FaissIndex(folder.codebook)
    for ids, codes in catalog.codes():
        index.add(codes, ids)
    write_atomically(draft / "index.faiss", faiss.serialize_index(index.standalone()).tobytes())
    write_atomically(draft / "photos.csv", csv_file.getvalue().encode())
    write_atomically(draft / "ids.npy", _to_bytes(lambda file: np.save(file, np.array(numbers, np.int64))))
    return len(index), {}


def _as_arrays(folder: Folder, catalog: Transfer, draft: Path) -> tuple[int, dict[str, str]]:
    arrays, script = as_arrays(folder.codebook)
    write_atomically(draft / "quantizer.npz", _to_bytes(lambda file: np.savez(file, **arrays)))  # type: ignore[arg-type]
    return catalog.counts()["photos"], {"script": script}


def _to_bytes(save: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


_WRITERS = {"parquet": _as_parquet, "faiss": _as_faiss, "arrays": _as_arrays}

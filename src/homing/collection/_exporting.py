"""A collection in forms that need nothing of homing, and a collection made of one."""

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

from homing._files import whole_folder, write_atomically
from homing._places import Address, Place, is_below
from homing.codebooks import Codebook
from homing.codebooks.arrays import as_arrays
from homing.collection._parquet import read_counts, read_photos, read_releases, write_parquet
from homing.collection._transfer import Transfer
from homing.collection.folder import Folder, create_folder, read_background
from homing.errors import CollectionError, HomingError, UnknownNameError
from homing.indexes import FaissIndex

_TOLD = {
    "parquet": """\
References of a homing collection (photos.parquet: file hash, source, state, code, and the descriptor of the original in
half precision) and what was released of them (releases.parquet; `photo` is an id). `codebook` holds the quantiser,
`background` the codes of strangers if there were any.

A collection again: homing import NEW_COLLECTION THIS_FOLDER
""",
    "faiss": """\
The index of a homing collection, index.faiss, as FAISS reads it by itself. It answers with ids: ids.npy holds all of
them, photos.csv says of each which photo it is. Distances are squared.

```python
import faiss

index = faiss.read_index("index.faiss")
squared, ids = index.search(x, 10)  # of descriptors x: (N, {dim}), unit norm, float32, of the network {extractor}
```
""",
    "arrays": """\
The quantiser of a homing collection as plain arrays, quantiser.npz. The codes of descriptors `x`, (N, {dim}) of unit
norm, float32, of the network {extractor}, are:

```python
import numpy as np

{script}
```
""",
}


@dataclass(frozen=True)
class Export:
    """What was exported: the folder and its files, in which format, and how many references."""

    out: Path
    format: str
    photos: int
    files: list[str]


def export_folder(folder: Folder, out: Place, format: str) -> Export:
    """Write a collection, as it is at this moment, into a new folder; it appears whole or not at all."""
    if format not in _WRITERS:
        raise UnknownNameError("format", format, _WRITERS)
    if isinstance(out, Address):
        raise HomingError(f"{out} is not on this machine; export to a folder here, and copy that")
    if is_below(out, folder.home):
        raise HomingError(f"{out} lies inside the collection; choose another folder to export to")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise HomingError(f"{out} exists and is not empty; choose another folder to export to")
    out = Path(os.path.abspath(out))
    try:
        with whole_folder(out) as draft, closing(Transfer(folder.path / "catalogue.sqlite")) as catalogue:
            with catalogue.standstill():
                count, about = _WRITERS[format](folder, catalogue, draft)
            told = {"dim": folder.codebook.dim, "extractor": folder.codebook.extractor, **about}
            write_atomically(draft / "README.md", _TOLD[format].format(**told).encode())
        return Export(out, format, count, sorted(file.name for file in out.iterdir()))
    except OSError as error:
        raise HomingError(f"cannot export to {out}: {error.strerror}") from error


def import_folder(path: Path, export: Path) -> None:
    """Make a new collection of a Parquet export; it appears whole or not at all."""
    if not (export / "photos.parquet").is_file():
        raise CollectionError(f"{export} is no Parquet export; make one with: homing export COLLECTION --out {export}")
    codebook = Codebook.read(export / "codebook")
    background = read_background(export, codebook)
    last_id, strangers = read_counts(export)
    if strangers != (0 if background is None else len(background)):
        raise CollectionError(f"{export} has lost its background of {strangers:,} strangers; put the file back")

    def fill(draft: Path) -> None:
        with closing(Transfer(draft / "catalogue.sqlite")) as catalogue:
            for photos in read_photos(export, codebook):
                catalogue.take_photos(photos)
            for releases in read_releases(export, codebook):
                catalogue.take_releases(releases)
            catalogue.reserve(last_id)

    create_folder(path, codebook, background, fill)


def _as_parquet(folder: Folder, catalogue: Transfer, draft: Path) -> tuple[int, dict[str, str]]:
    strangers = 0 if folder.background is None else len(folder.background)
    count = write_parquet(catalogue, folder.codebook, strangers, draft)
    write_atomically(draft / "codebook", folder.codebook.to_bytes())
    if folder.background is not None:
        write_atomically(draft / "background", folder.background.to_bytes())
    return count, {}


def _as_faiss(folder: Folder, catalogue: Transfer, draft: Path) -> tuple[int, dict[str, str]]:
    numbers: list[int] = []
    listing = io.StringIO(newline="")
    lines = csv.writer(listing)
    lines.writerow(["id", "sha256", "source", "state"])
    for rows in catalogue.photos(folder.codebook):  # first, since it refuses what is damaged
        lines.writerows(row[:4] for row in rows)
        numbers += [row.id for row in rows]
    index = FaissIndex(folder.codebook)
    for ids, codes in catalogue.codes():
        index.add(codes, ids)
    write_atomically(draft / "index.faiss", faiss.serialize_index(index.standalone()).tobytes())
    write_atomically(draft / "photos.csv", listing.getvalue().encode())
    write_atomically(draft / "ids.npy", _saved(lambda file: np.save(file, np.array(numbers, np.int64))))
    return len(index), {}


def _as_arrays(folder: Folder, catalogue: Transfer, draft: Path) -> tuple[int, dict[str, str]]:
    arrays, script = as_arrays(folder.codebook)
    write_atomically(draft / "quantiser.npz", _saved(lambda file: np.savez(file, **arrays)))  # type: ignore[arg-type]
    return catalogue.counts()["photos"], {"script": script}


def _saved(save: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()


_WRITERS = {"parquet": _as_parquet, "faiss": _as_faiss, "arrays": _as_arrays}

"""What a bench computes once and caches in its out folder: descriptors of distractors and copies, and codebooks."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import PIL
import torch
from torch import Tensor

from homing import __version__, codebooks
from homing._io.files import create_memmap, report_write_errors, write_atomically
from homing._io.parallel import prefetch_map
from homing.codebooks import Codebook
from homing.collection.search import VARIANTS, query_variants
from homing.edits import GENERATED, Edit, Surroundings
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.extractors.base import default_batch_size
from homing.extractors.crops import MIN_CROP_SIDE, SEED, describe_crops, square_side
from homing.imaging import to_image, to_pixels
from homing.photo import LocalPhoto, Photo, find_photos

if TYPE_CHECKING:
    from homing.bench.base import Progress

_CHECKED_AT_ONCE = 65_536
_FOLDER = "a folder of photos works with every network"
_NORM_TOLERANCE = 0.05  # rounding to bfloat16 or half precision stays below it


class CachedArray:
    """An array in a file whose first rows are filled, with a JSON file beside it: the number of rows and metadata.

    A second run with the same file and shape resumes where the first one stopped. A damaged file is replaced.
    """

    def __init__(self, file: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        self._file, self._metadata_file = file, file.with_suffix(".json")
        self.metadata: dict[str, Any] = {}
        self.count = 0
        with report_write_errors(file):
            array = self._load(shape, dtype)
            if array is None:
                self._metadata_file.unlink(missing_ok=True)  # it describes rows that no longer exist
                array = create_memmap(file, shape, dtype)
            self._array = array

    @property
    def rows(self) -> np.ndarray:
        """The filled rows."""
        return self._array[: self.count]

    def append(self, rows: np.ndarray, **metadata: object) -> None:
        """Fill the next rows and flush them to disk."""
        with report_write_errors(self._file):
            self._array[self.count : self.count + len(rows)] = rows
            assert isinstance(self._array, np.memmap)
            self._array.flush()
            self.count += len(rows)
            self.metadata = metadata
            write_atomically(self._metadata_file, json.dumps({"rows": self.count, **metadata}, indent=2).encode())

    def _load(self, shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray | None:
        """The array of an earlier run, or None if it is missing, damaged or of another shape."""
        try:
            metadata = json.loads(self._metadata_file.read_text())
            np.lib.format.open_memmap(self._file, mode="r")  # raises for a truncated file; "r+" would extend it
            array = np.lib.format.open_memmap(self._file, mode="r+")
            count = int(metadata.pop("rows"))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, EOFError):
            return None
        if array.shape != shape or array.dtype != dtype or not 0 <= count <= len(array):
            return None
        self.metadata, self.count = metadata, count
        return array


def cache_key(*inputs: object) -> str:
    """A short hash of all inputs of a cached result, for its file name."""
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


def file_state(path: Path) -> list[int]:
    """Size and modification time of a file, to detect changes without reading it; empty if the file is missing."""
    try:
        stat = path.stat()
    except OSError:
        return []
    return [stat.st_size, stat.st_mtime_ns]


@dataclass(frozen=True)
class ReleasedPhoto:
    """A released file and the reference that is correct for it.

    The seed of its edits depends on the photo only, so that releases with different recipes get the same random edits.
    """

    source: str
    file: Path
    seed: int


@dataclass(frozen=True)
class DescriptorSet:
    """Descriptors (N, D) in half precision, the number of distinct photos they are of, and errors of unreadable photos.

    `codes` (N, bytes) are set where only the codes of the photos are known; `descriptors` are then decoded from them.
    """

    descriptors: np.ndarray
    photos: int
    failures: list[str]
    codes: np.ndarray | None = None


def check_bundled_distractors(codebook: Codebook) -> None:
    """Refuse a codebook that has no bundled distractors."""
    if not codebooks.has_distractors(codebook):
        raise HomingError(
            f"codebook '{codebook.name}' has no bundled distractors; give photos to search among with "
            f"--distractor-photos, or one of these codebooks: {', '.join(codebooks.available())}"
        )


def bundled_descriptor_set(codebook: Codebook, count: int) -> DescriptorSet:
    """The first `count` distractors that are bundled with a codebook."""
    check_bundled_distractors(codebook)
    codes = codebooks.bundled_distractors(codebook).codes[:count]
    return DescriptorSet(codebook.decode(codes).numpy().astype(np.float16), len(codes), [], codes)


def compute_descriptor_set(
    extractor: Extractor, photos: Sequence[LocalPhoto], count: int, folder: Path, advance: Callable[[], None]
) -> DescriptorSet:
    """Descriptors of these photos: `count` in all if every photo can be read; cached in the folder.

    `advance` is called for each photo, first for those of an earlier run.
    """
    settings = [extractor.fingerprint, count, SEED, square_side(extractor), MIN_CROP_SIDE]
    file = folder / f"descriptors-{cache_key(settings, photo_states(photos))}.npy"
    cache = CachedArray(file, (count, extractor.dim), np.float16)
    seen, failures = cache.metadata.get("seen", 0), cache.metadata.get("failures", [])
    for _ in range(seen):
        advance()

    def report(error: PhotoError | None) -> None:
        nonlocal seen
        advance()
        seen += 1
        if error is not None:
            failures.append(str(error))

    paths = [photo.path for photo in photos]
    for batch in describe_crops(extractor, paths, count, report, start=seen):
        cache.append(batch, seen=seen, failures=failures, extractor=extractor.fingerprint)
    if not cache.count:
        raise HomingError(f"none of the {len(failures)} distractor photos can be read; the first error: {failures[0]}")
    return DescriptorSet(cache.rows, seen - len(failures), failures)


def load_descriptor_set(
    given: Path,
    extractor: Extractor,
    count: int | None,
    folder: Path,
    progress: Progress,
    what: str,
    *,
    crops: bool = True,
) -> DescriptorSet:
    """The first `count` descriptors of a .npy file, or those of the photos of a folder: by default one for each.

    If there are fewer photos, the others are of crops, or missing without `crops`. `what` describes the progress.
    """
    if given.is_file():
        return read_descriptor_set(given, extractor, count)
    photos = find_photos([given])
    count = count or len(photos)
    if not crops:
        photos = photos[:count]
        count = len(photos)
    with progress(what, min(count, len(photos))) as advance:
        return compute_descriptor_set(extractor, photos, count, folder, advance)


def read_descriptor_set(file: Path, extractor: Extractor, count: int | None) -> DescriptorSet:
    """The first `count` descriptors of a .npy file: a bench's cache, or (N, D) numbers from elsewhere."""
    try:
        rows: np.ndarray = np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise HomingError(f"cannot read descriptors from {file}; give a .npy file or a folder of photos") from error
    if rows.ndim != 2 or rows.shape[1] != extractor.dim or rows.dtype.kind != "f":
        got = f"{rows.shape} of {rows.dtype}"
        raise HomingError(
            f"{file} must hold (N, {extractor.dim}) descriptors of '{extractor.name}', got {got}; {_FOLDER}"
        )
    filled, photos, failures, fingerprint = _read_metadata(file, len(rows))
    if fingerprint not in (None, extractor.fingerprint):
        raise HomingError(f"{file} holds descriptors of another network than '{extractor.name}'; {_FOLDER}")
    rows = rows[: filled if count is None else min(count, filled)]
    if not len(rows):
        raise HomingError(f"{file} holds no descriptors")
    _expect_descriptors(rows, file)
    return DescriptorSet(rows, min(photos, len(rows)), failures)


def photo_states(photos: Sequence[LocalPhoto]) -> list[list[object]]:
    """Name, size and modification time of each photo, to tell sets of photos apart."""
    return [[str(photo.name), *file_state(photo.path)] for photo in photos]


def _read_metadata(file: Path, rows: int) -> tuple[int, int, list[str], str | None]:
    """The metadata of a bench's cache: filled rows, number of photos, failures, the network's fingerprint."""
    metadata_file = file.with_suffix(".json")
    if not metadata_file.is_file():
        return rows, rows, [], None  # numbers from elsewhere: one photo each is assumed
    try:
        metadata = json.loads(metadata_file.read_text())
        filled, failures = min(int(metadata["rows"]), rows), list(metadata["failures"])
        return filled, int(metadata["seen"]) - len(failures), failures, str(metadata["extractor"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HomingError(f"{metadata_file} is damaged; run the bench that wrote it again") from error


def _expect_descriptors(rows: np.ndarray, file: Path) -> None:
    """Refuse rows that are not of unit norm: no extractor returns them, and an index would be wrong or fail."""
    for start in range(0, len(rows), _CHECKED_AT_ONCE):
        lengths = np.linalg.norm(rows[start : start + _CHECKED_AT_ONCE].astype(np.float32), axis=1)
        if not (np.abs(lengths - 1) < _NORM_TOLERANCE).all():  # false for NaN
            raise HomingError(f"{file} must hold descriptors of unit norm; some of its rows are not")


def describe_copies(
    extractor: Extractor,
    released: Sequence[ReleasedPhoto],
    edits: Sequence[Edit],
    folder: Path,
    advance: Callable[[], None],
    *,
    surroundings: Surroundings = GENERATED,
    variants: bool = False,
) -> np.ndarray:
    """Descriptors (P, E, dim) of P files with E edits, cached in the folder; `advance` is called for each file.

    With `variants`, each copy is described in its T query variants (quarter turns and mirror): (P, E, T, dim).
    """
    files = [[item.source, item.seed, *file_state(item.file)] for item in released]
    key = cache_key(
        extractor.fingerprint,
        [edit.label for edit in edits],
        files,
        __version__,
        PIL.__version__,
        *(["variants"] if variants else []),
        *(
            [[str(file), *file_state(file)] for file in surroundings.files]
            if any(e.kind.takes_surroundings for e in edits)
            else []
        ),
    )
    file = folder / f"copies-{key}.npy"
    shape = (len(edits), VARIANTS) if variants else (len(edits),)
    cache = CachedArray(file, (len(released), *shape, extractor.dim), np.float32)
    for _ in range(cache.count):
        advance()
    for batch in edited_copies(extractor, released[cache.count :], edits, surroundings=surroundings, variants=variants):
        cache.append(batch.view(len(batch), *shape, -1).numpy())
        for _ in batch:
            advance()
    return cache.rows


def edited_copies(
    extractor: Extractor,
    released: Iterable[ReleasedPhoto],
    edits: Sequence[Edit],
    *,
    surroundings: Surroundings = GENERATED,
    variants: bool = False,
) -> Iterator[Tensor]:
    """Batches (B, E, dim) of descriptors of files with E edits; the network runs on several files at once.

    With `variants`, the T variants of each copy follow each other: (B, E * T, dim).
    """

    def edited(item: ReleasedPhoto) -> Tensor:
        image = to_image(Photo.load(item.file).pixels())
        inputs = [extractor.resize(to_pixels(edit(image, item.seed, surroundings))) for edit in edits]
        return torch.stack([each for square in inputs for each in query_variants(square)] if variants else inputs)

    edited_files = prefetch_map(edited, released)
    count = len(edits) * (VARIANTS if variants else 1)
    while batch := list(islice(edited_files, max(default_batch_size(extractor) // count, 1))):
        inputs = torch.cat(batch)
        with torch.inference_mode():
            parts = [
                extractor(part.to(extractor.device)).cpu()
                for part in torch.split(inputs, default_batch_size(extractor))
            ]
        yield torch.cat(parts).view(len(batch), count, -1)


def uncached_copies(
    extractor: Extractor, released: Sequence[ReleasedPhoto], edits: Sequence[Edit], advance: Callable[[], None]
) -> Tensor:
    """Descriptors (P, E, dim) of files with E edits; `advance` is called for each file."""
    batches = []
    for batch in edited_copies(extractor, released, edits):
        batches.append(batch)
        for _ in batch:
            advance()
    return torch.cat(batches)


def refuse_overlap(photos: Sequence[LocalPhoto], others: Sequence[LocalPhoto], what: str) -> None:
    """Refuse a photo whose bytes are in both lists; `what` describes the conflict in the message."""
    sizes: dict[int, list[Path]] = {}
    for other in others:
        sizes.setdefault(_size(other.path), []).append(other.path)
    for photo in photos:
        if any(_same(photo.path, other) for other in sizes.get(_size(photo.path), [])):
            raise HomingError(f"{photo.path} is {what}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0  # reported when it is read


def _same(path: Path, other: Path) -> bool:
    try:
        return filecmp.cmp(path, other, shallow=False)
    except OSError:
        return False  # as above


def refuse_inside(out: Path, folder: Path) -> None:
    """Refuse an out folder inside an input folder: results would become input."""
    if folder.is_dir() and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(folder)):
        raise HomingError(f"the out folder {out} lies inside {folder}; choose another --out")

"""Released files for a bench, one folder per recipe; an interrupted release is resumed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from homing import __version__
from homing._io.files import report_write_errors, write_atomically
from homing.activation import Recipe, activate_batch
from homing.activation.pipeline import CPU_BATCH_SIZE, BatchSize, ReleasePipeline, batch_size_for
from homing.activation.release_check import Activation
from homing.bench.base import PASSIVE
from homing.bench.data import file_state
from homing.codebooks import Codebook
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.perception import Quality
from homing.photo import Photo, PhotoFile
from homing.watermarks.embedding import MarkedPhoto

ModifiedPhoto = Activation | MarkedPhoto
_QUALITY = {field.name for field in fields(Quality)}


@dataclass(frozen=True)
class ReleasedPhoto:
    """A released file and the reference that is correct for it.

    The seed of its edits depends on the photo only, so that releases with different recipes get the same random edits.
    """

    source: str
    file: Path
    seed: int


@dataclass(frozen=True)
class ReleaseResult:
    """The files of one recipe or watermark, the quality of the modified ones, and errors of photos not released.

    An unchanged photo is released without modification and has no entry in `qualities`.
    """

    name: str  # of the recipe or watermark
    files: list[ReleasedPhoto]
    qualities: list[Quality] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    activated: list[ReleasedPhoto] = field(default_factory=list)  # the modified files, in the order of the qualities

    def columns(self) -> dict[str, Any]:
        """Number of files, and means over the modified ones, for a row of results.json."""
        return {
            "photos": len(self.files),
            "activated": len(self.qualities),
            "psnr": fmean(quality.psnr for quality in self.qualities) if self.qualities else None,
            "ssim": fmean(quality.ssim for quality in self.qualities) if self.qualities else None,
            "seconds_per_photo": None if self.name == PASSIVE else self.seconds / len(self.files),
        }


def release(
    originals: Sequence[ReleasedPhoto],
    folder: Path,
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    advance: Callable[[], None],
) -> ReleaseResult:
    """Activate photos and write them to the folder under their source names; `advance` is called for each photo."""
    modify = partial(activate_batch, extractor=extractor, codebook=codebook, recipe=recipe)
    key, size = f"{codebook.fingerprint} {recipe!r}", batch_size_for(extractor.device)
    return release_modified(originals, folder, modify=modify, key=key, advance=advance, size=size)


def release_modified(
    originals: Sequence[ReleasedPhoto],
    folder: Path,
    *,
    modify: Callable[[Sequence[Photo]], Sequence[ModifiedPhoto | PhotoError]],
    key: str,
    advance: Callable[[], None],
    size: BatchSize = CPU_BATCH_SIZE,
) -> ReleaseResult:
    """Apply `modify` to batches of photos and write the results to the folder under their source names.

    `key` identifies everything that affects the result; a folder written with another key is written again.
    """
    for original in originals:
        target = (folder / original.source).resolve()
        if not target.is_relative_to(folder.resolve()):  # it could overwrite the photo itself
            raise HomingError(f"{original.source} would be written outside of {folder}")
    log = _Log(folder, f"{__version__} {key}")
    remaining = [original for original in originals if not log.is_current(original)]
    for _ in range(len(originals) - len(remaining)):
        advance()
    for _ in ReleasePipeline(source=_read, activate=modify, sink=log.write, size=size).run(remaining):
        advance()
    entries = [log.entries[original.source] for original in originals]
    released = ReleaseResult(folder.name, [], seconds=sum(entry["seconds"] for entry in entries))
    for original, entry in zip(originals, entries, strict=True):
        if entry["state"] == "failed":
            released.failures.append(entry["reason"])
            continue
        released.files.append(replace(original, file=folder / original.source))
        if entry["state"] != "unchanged":
            released.qualities.append(Quality(**entry["quality"]))
            released.activated.append(released.files[-1])
    return released


class _Log:
    """A log with a line for each photo. Photos that failed, changed, or have another key are released again."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder.with_name(f"{folder.name}.jsonl")  # next to the folder of photos, not inside
        self._folder = folder
        self.entries: dict[str, dict[str, Any]] = {}
        self._last = time.perf_counter()  # when the previous photo was finished
        with report_write_errors(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            first, *lines = list(self._lines()) or [None]
            if first == {"key": key}:
                self.entries = {entry["source"]: entry for entry in lines if _is_valid_entry(entry)}
            whole = [{"key": key}, *self.entries.values()]
            write_atomically(self._path, "".join(json.dumps(entry) + "\n" for entry in whole).encode())

    def is_current(self, original: ReleasedPhoto) -> bool:
        """Whether this photo was released and neither it nor the released file changed since."""
        entry = self.entries.get(original.source)
        files = [file_state(original.file), file_state(self._folder / original.source)]
        return entry is not None and [entry["photo"], entry["file"]] == files

    def write(self, batch: Sequence[tuple[ReleasedPhoto, ModifiedPhoto | PhotoError]]) -> list[ReleasedPhoto]:
        """Write the files of a batch, and log the result of each photo."""
        for original, result in batch:
            entry: dict[str, Any] = {"source": original.source, "photo": file_state(original.file)}
            if isinstance(result, PhotoError):
                entry |= {"state": "failed", "reason": str(result)}
            else:
                target, quality = self._folder / original.source, asdict(result.quality).items()
                with report_write_errors(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(target, result.data)
                finite = {name: value if math.isfinite(value) else None for name, value in quality}
                entry |= {"state": result.state, "reason": result.reason, "quality": finite, "file": file_state(target)}
            now = time.perf_counter()
            entry["seconds"], self._last = now - self._last, now
            self.entries[original.source] = entry
            with report_write_errors(self._path), self._path.open("a") as file:
                file.write(json.dumps(entry) + "\n")
        return [original for original, _ in batch]

    def _lines(self) -> Iterator[Any]:
        """All complete lines; the last one may be truncated."""
        try:
            for line in self._path.read_text().splitlines():
                yield json.loads(line)
        except (FileNotFoundError, ValueError):
            return


def _is_valid_entry(entry: Any) -> bool:
    """Whether an entry is of a released photo and has the format that `_Log` writes; others are released again."""
    keys = {"source", "photo", "seconds", "state", "file", "quality"}
    return (
        isinstance(entry, dict)
        and keys <= set(entry)
        and isinstance(entry["source"], str)
        and isinstance(entry["seconds"], int | float)
        and isinstance(entry["quality"], dict)
        and set(entry["quality"]) == _QUALITY
    )


def _read(originals: Sequence[ReleasedPhoto]) -> list[tuple[ReleasedPhoto, PhotoFile | PhotoError]]:
    pairs: list[tuple[ReleasedPhoto, PhotoFile | PhotoError]] = []
    for original in originals:
        try:
            pairs.append((original, PhotoFile.read(original.file)))
        except PhotoError as error:
            pairs.append((original, error))
    return pairs

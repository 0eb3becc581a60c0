"""Released files for a bench, one folder per recipe; an interrupted release is resumed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from homing import __version__
from homing._io.files import report_write_errors, write_atomically
from homing.activation import Recipe, activate_batch
from homing.activation.pipeline import CPU_BATCH_SIZE, BatchSize, ReleasePipeline, batch_size_for
from homing.bench.data import file_state
from homing.codebooks import Codebook
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.perception import Quality
from homing.photo import Photo, PhotoFile

_QUALITY = {field.name for field in fields(Quality)}


@dataclass(frozen=True)
class ReleasedPhoto:
    """A released file and the reference that is correct for it.

    The seed of its edits depends on the photo only, so that releases with different recipes get the same random edits.
    """

    source: str
    file: Path
    seed: int


class ModifiedPhoto(Protocol):
    """The result for one photo: the bytes to release and their measured quality."""

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        ...

    @property
    def state(self) -> str:
        """`unchanged` if the pixels are those of the original."""
        ...

    @property
    def reason(self) -> str | None:
        """Why the photo has this state."""
        ...

    @property
    def quality(self) -> Quality:
        """Quality of the file, decoded again."""
        ...


@dataclass(frozen=True)
class ReleaseResult:
    """The files of one recipe or watermark, the quality of the modified ones, and errors of photos not released.

    An unchanged photo is released without modification and has no entry in `qualities`.
    """

    files: list[ReleasedPhoto]
    qualities: list[Quality]
    failures: list[str]
    seconds: float
    activated: list[ReleasedPhoto] = field(default_factory=list)  # the modified files, in the order of the qualities


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
    return release_modified(
        originals,
        folder,
        modify=modify,
        key=f"{codebook.fingerprint} {recipe!r}",
        advance=advance,
        size=batch_size_for(extractor.device),
    )


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
    release_result = ReleaseResult([], [], [], sum(log.entry(original)["seconds"] for original in originals))
    for original in originals:
        entry = log.entry(original)
        if entry["state"] == "failed":
            release_result.failures.append(entry["reason"])
            continue
        release_result.files.append(replace(original, file=folder / original.source))
        if entry["state"] != "unchanged":
            release_result.qualities.append(Quality(**entry["quality"]))
            release_result.activated.append(release_result.files[-1])
    return release_result


class _Log:
    """A log with a line for each photo. Photos that failed, changed, or have another key are released again."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder.with_name(f"{folder.name}.jsonl")  # next to the folder of photos, not inside
        self._folder = folder
        self._entries: dict[str, dict[str, Any]] = {}
        self._last = time.perf_counter()  # when the previous photo was finished
        with report_write_errors(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            first, *lines = list(self._lines()) or [None]
            if first == {"key": key}:
                self._entries = {entry["source"]: entry for entry in lines if _is_valid_entry(entry)}
            whole = [{"key": key}, *self._entries.values()]
            write_atomically(self._path, "".join(json.dumps(entry) + "\n" for entry in whole).encode())

    def is_current(self, original: ReleasedPhoto) -> bool:
        """Whether this photo was released and neither it nor the released file changed since."""
        entry = self._entries.get(original.source, {"state": "failed"})
        if entry["state"] == "failed" or entry["photo"] != file_state(original.file):
            return False
        return bool(entry["file"] == file_state(self._folder / original.source))

    def entry(self, original: ReleasedPhoto) -> dict[str, Any]:
        """The log entry of a photo."""
        return self._entries[original.source]

    def write(self, batch: Sequence[tuple[ReleasedPhoto, ModifiedPhoto | PhotoError]]) -> list[ReleasedPhoto]:
        """Write the files of a batch, and log the result of each photo."""
        for original, result in batch:
            if not isinstance(result, PhotoError):
                target = self._folder / original.source
                with report_write_errors(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_atomically(target, result.data)
            self._add(original, result)
        return [original for original, _ in batch]

    def _add(self, original: ReleasedPhoto, result: ModifiedPhoto | PhotoError) -> None:
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        entry: dict[str, Any] = {"source": original.source, "photo": file_state(original.file), "seconds": seconds}
        if isinstance(result, PhotoError):
            entry |= {"state": "failed", "reason": str(result)}
        else:
            quality = {name: value if math.isfinite(value) else None for name, value in asdict(result.quality).items()}
            written = file_state(self._folder / original.source)
            entry |= {"state": result.state, "reason": result.reason, "quality": quality, "file": written}
        self._entries[original.source] = entry
        with report_write_errors(self._path), self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def _lines(self) -> Iterator[Any]:
        """All complete lines; the last one may be truncated."""
        try:
            for line in self._path.read_text().splitlines():
                yield json.loads(line)
        except (FileNotFoundError, ValueError):
            return


def _is_valid_entry(entry: Any) -> bool:
    """Whether an entry has the format that `_Log` writes; photos of other entries are released again."""
    if not isinstance(entry, dict) or not isinstance(entry.get("source"), str):
        return False
    if not isinstance(entry.get("seconds"), int | float) or entry.get("state") == "failed":
        return False
    quality = entry.get("quality")
    return isinstance(quality, dict) and set(quality) == _QUALITY and {"state", "photo", "file"} <= set(entry)


def _read(originals: Sequence[ReleasedPhoto]) -> list[tuple[ReleasedPhoto, PhotoFile | PhotoError]]:
    pairs: list[tuple[ReleasedPhoto, PhotoFile | PhotoError]] = []
    for original in originals:
        try:
            pairs.append((original, PhotoFile.read(original.file)))
        except PhotoError as error:
            pairs.append((original, error))
    return pairs

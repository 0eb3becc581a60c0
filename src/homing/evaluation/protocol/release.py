"""Photos released in one way, as files: what a bench lets others edit. A second run goes on where one stopped."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from homing import __version__
from homing._io.files import report_write_errors, write_atomically
from homing._io.parallel import prefetch_map
from homing.activation import Recipe, activate_batch
from homing.activation.pipeline import CPU_BATCH_SIZE, BatchSize, batch_size_for, map_batches
from homing.codebooks import Codebook
from homing.errors import HomingError, PhotoError
from homing.evaluation.protocol.cache import file_state
from homing.extractors import Extractor
from homing.perception import Quality
from homing.photo import Photo

_QUALITY = {field.name for field in fields(Quality)}


@dataclass(frozen=True)
class ReleasedPhoto:
    """A file that is out in the world, and the reference it should come home to.

    The seed is the photo's, however it was released: sets whose copies were made with the same random numbers compare.
    """

    source: str
    file: Path
    seed: int


class ModifiedPhoto(Protocol):
    """What came of one photo: the bytes to release, and how they were found to be."""

    @property
    def data(self) -> bytes:
        """The file."""
        ...

    @property
    def state(self) -> str:
        """Whether its pixels moved, or are `unchanged`."""
        ...

    @property
    def reason(self) -> str | None:
        """For the state."""
        ...

    @property
    def quality(self) -> Quality:
        """Of the file, decoded again."""
        ...


@dataclass(frozen=True)
class ReleaseResult:
    """The files of one recipe, the quality of those that were activated, and why others could not be released.

    A photo that activation left unchanged is released as it was, and has no part in the quality. The same of photos
    that were given a watermark.
    """

    files: list[ReleasedPhoto]
    qualities: list[Quality]
    failures: list[str]
    seconds: float
    activated: list[ReleasedPhoto] = field(default_factory=list)  # the files of the qualities, in their order


def release(
    originals: Sequence[ReleasedPhoto],
    folder: Path,
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    advance: Callable[[], None],
) -> ReleaseResult:
    """Activate photos and write them into the folder under the names of their sources; `advance` is called for each."""
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
    """The same with what `move` makes of photos, in batches of this size; the key names all that decides it."""
    for original in originals:
        if not (folder / original.source).resolve().is_relative_to(folder.resolve()):  # over the photo itself, perhaps
            raise HomingError(f"{original.source} would be written outside of {folder}")
    log = _Log(folder, f"{__version__} {key}")
    remaining = [original for original in originals if not log.is_current(original)]
    for _ in range(len(originals) - len(remaining)):
        advance()
    started = time.perf_counter()
    for original, result in chain.from_iterable(map_batches(prefetch_map(_load, remaining), modify, size)):
        if not isinstance(result, PhotoError):
            target = folder / original.source
            with report_write_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(target, result.data)
        log.add(original, result, time.perf_counter() - started)
        started = time.perf_counter()
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
    """A line for each photo; what was done for another recipe or of a changed photo, and what failed, is done again."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder.with_name(f"{folder.name}.jsonl")  # beside the photos, not among them
        self._folder = folder
        self._entries: dict[str, dict[str, Any]] = {}
        with report_write_errors(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            first, *lines = list(self._lines()) or [None]
            if first == {"key": key}:
                self._entries = {entry["source"]: entry for entry in lines if _is_valid_entry(entry)}
            whole = [{"key": key}, *self._entries.values()]
            write_atomically(self._path, "".join(json.dumps(entry) + "\n" for entry in whole).encode())

    def is_current(self, original: ReleasedPhoto) -> bool:
        """Whether this photo was released, and its file is as it was written."""
        entry = self._entries.get(original.source, {"state": "failed"})
        if entry["state"] == "failed" or entry["photo"] != file_state(original.file):
            return False
        return bool(entry["file"] == file_state(self._folder / original.source))

    def entry(self, original: ReleasedPhoto) -> dict[str, Any]:
        """What was noted of a photo."""
        return self._entries[original.source]

    def add(self, original: ReleasedPhoto, result: ModifiedPhoto | PhotoError, seconds: float) -> None:
        """Note what came of a photo."""
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
        """All whole lines: the last one may have been cut off."""
        try:
            for line in self._path.read_text().splitlines():
                yield json.loads(line)
        except (FileNotFoundError, ValueError):
            return


def _is_valid_entry(entry: Any) -> bool:
    """Whether a line is one that `_Log` wrote; what somebody made of another is done again."""
    if not isinstance(entry, dict) or not isinstance(entry.get("source"), str):
        return False
    if not isinstance(entry.get("seconds"), int | float) or entry.get("state") == "failed":
        return False
    quality = entry.get("quality")
    return isinstance(quality, dict) and set(quality) == _QUALITY and {"state", "photo", "file"} <= set(entry)


def _load(original: ReleasedPhoto) -> tuple[ReleasedPhoto, Photo | PhotoError]:
    try:
        return original, Photo.load(original.file)
    except PhotoError as error:
        return original, error

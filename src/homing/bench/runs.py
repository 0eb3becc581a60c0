"""One codebook under test: its photos released, their copies edited and searched for among the distractors.

Files are released into one folder per recipe; an interrupted release is resumed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from homing import __version__
from homing._io.files import report_write_errors, write_atomically
from homing.activation import Recipe, activate_batch, resolve_recipe
from homing.activation.pipeline import CPU_BATCH_SIZE, BatchSize, ReleasePipeline, batch_size_for
from homing.activation.release_check import Activation
from homing.bench.base import PASSIVE, PhotoSettings, Progress
from homing.bench.data import DescriptorSet, ReleasedPhoto, describe_copies, file_state
from homing.bench.figures import Share
from homing.bench.references import Neighbors, Probes, References
from homing.bench.scores import rank_of
from homing.bench.tables import Row
from homing.codebooks import Codebook
from homing.edits import GENERATED, PAPER, Edit, Surroundings
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor
from homing.objectives import has_objective
from homing.perception import Quality
from homing.photo import Photo, PhotoFile
from homing.watermarks.base import MarkedPhoto

LABELS = [edit.label for edit in PAPER]
INTERVALS = "95 %: a bootstrap over photos (1,000 rounds, seed 0); of width 0 if all photos have the same result"
ModifiedPhoto = Activation | MarkedPhoto
_QUALITY = {field.name for field in fields(Quality)}


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


@dataclass(frozen=True)
class CopySearch:
    """The searches for the copies of one release: P files, each with E edits.

    `found` is the nearest reference of each copy, file by file. `ranks` (P, E) are the ranks of the correct references:
    0 for the nearest, -1 if it was not returned.
    """

    run: CodebookRun
    recipe: str
    search: Probes | str
    sources: list[str]
    labels: list[str]
    found: Neighbors
    ranks: np.ndarray

    HEADINGS: ClassVar = ("codebook", "recipe", "probes", "photo", "edit", "rank", "found", "distance", "is_correct")

    @property
    def correct(self) -> np.ndarray:
        """Whether the nearest reference of each copy is correct: (P, E)."""
        return np.asarray(self.ranks == 0)

    def lines(self) -> Iterator[list[object]]:
        """A CSV row for each search."""
        names = [original.source for original in self.run.originals]
        head = [self.run.codebook.name, self.recipe, self.search]
        copies = [(source, label) for source in self.sources for label in self.labels]
        for query, (copy, rank) in enumerate(zip(copies, self.ranks.ravel().tolist(), strict=True)):
            yield [*head, *copy, "" if rank < 0 else rank + 1, *self.found.nearest(query, names), int(rank == 0)]


@dataclass(frozen=True)
class CodebookRun:
    """One codebook under test, its network, and the (P, D) descriptors of the originals and of the distractors."""

    settings: PhotoSettings
    codebook: Codebook
    extractor: Extractor
    originals: list[ReleasedPhoto]
    descriptors: Tensor
    distractors: DescriptorSet
    failures: list[str]
    progress: Progress

    @cached_property
    def references(self) -> References:
        """The originals among the distractors."""
        return References(self.codebook, self.descriptors, self.distractors, self.extractor.device)

    def columns(self, recipe: str) -> dict[str, str]:
        """What every row of results.json begins with."""
        book = self.codebook
        return {"codebook": book.name, "extractor": book.extractor, "spec": book.spec, "recipe": recipe}

    def supported_recipes(self, recipes: Sequence[str]) -> list[str]:
        """The recipes this codebook supports: only passive if activation cannot improve it."""
        wanted = list(dict.fromkeys(recipes))
        return [each for each in wanted if each == PASSIVE or has_objective(self.codebook)] or [PASSIVE]

    def probes(self, requested: Sequence[Probes]) -> list[Probes]:
        """The probes that give different results: an index without cells has only one, besides exact."""
        few = [each for each in requested if each == "exact"] + [each for each in requested if each != "exact"][:1]
        return list(requested) if self.codebook.has_cells else few

    def release(self, recipe: Recipe | str) -> ReleaseResult:
        """The released files; errors of photos that cannot be released are added to the failures."""
        if recipe == PASSIVE:
            return ReleaseResult(PASSIVE, self.originals)
        chosen, book = resolve_recipe(recipe), self.codebook
        folder = self.settings.out / "released" / book.name / chosen.name
        with self.progress(f"{book.name}: activating, {chosen.name}", len(self.originals)) as advance:
            released = release(
                self.originals, folder, extractor=self.extractor, codebook=book, recipe=chosen, advance=advance
            )
        if not released.files:
            raise HomingError(f"no photo could be released with {chosen}; the first error: {released.failures[0]}")
        self.failures.extend(released.failures)
        return released

    def copies(
        self,
        files: Sequence[ReleasedPhoto],
        edits: Sequence[Edit],
        what: str,
        *,
        surroundings: Surroundings = GENERATED,
        variants: bool = False,
    ) -> np.ndarray:
        """Descriptors (P, E, D) of these files with each edit; (P, E, T, D) with query variants."""
        with self.progress(f"{self.codebook.name}: editing, {what}", len(files)) as advance:
            return describe_copies(
                self.extractor,
                files,
                edits,
                self.settings.out,
                advance,
                surroundings=surroundings,
                variants=variants,
            )

    def search(self, copies: np.ndarray, k: int, probes: Probes, what: str) -> Neighbors:
        """The k nearest references of (P, E, D) copies, file by file."""
        with self.progress(f"{self.codebook.name}: searching, {what}", 1) as advance:
            found = self.references.search(copies.reshape(-1, copies.shape[2]), k, probes)
            advance()
        return found

    def copy_search(
        self, released: ReleaseResult, edits: Sequence[Edit], found: Neighbors, search: Probes | str
    ) -> CopySearch:
        """What was found for the copies of the files of one release, file by file."""
        ranks = rank_of(found.ids, self.true_ids(released.files).repeat(len(edits))).reshape(-1, len(edits))
        sources, labels = [file.source for file in released.files], [edit.label for edit in edits]
        return CopySearch(self, released.name, search, sources, labels, found.top1(), ranks)

    def true_ids(self, files: Sequence[ReleasedPhoto]) -> np.ndarray:
        """The reference (P,) that is correct for each of these files."""
        numbers = {original.source: number for number, original in enumerate(self.originals)}
        return np.array([numbers[file.source] for file in files])

    def cells(self, descriptors: np.ndarray | Tensor) -> np.ndarray:
        """The cells (N,) of (N, D) descriptors."""
        rows = descriptors if isinstance(descriptors, Tensor) else torch.from_numpy(np.array(descriptors))
        return np.asarray(self.codebook.cells(rows).numpy())


def network(row: Row) -> str:
    """The network of a row, without the folder of its file."""
    return Path(row["extractor"]).name


def recall_shares(row: Row) -> list[Share]:
    """The recall of a row by edit, with both ends of its intervals."""
    return [(share, *row["interval"][label]) for label, share in row["recall"].items()]


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

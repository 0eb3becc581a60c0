"""One codebook under test: its photos released, their copies edited and searched for among the distractors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from homing.activation import Recipe, resolve_recipe
from homing.bench.base import PASSIVE, PhotoSettings, Progress
from homing.bench.data import DescriptorSet, describe_copies
from homing.bench.figures import Share
from homing.bench.references import Neighbors, Probes, References
from homing.bench.release import ReleasedPhoto, ReleaseResult, release
from homing.bench.scores import rank_of
from homing.bench.tables import Row
from homing.codebooks import Codebook
from homing.edits import PAPER, Edit
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.objectives import has_objective

LABELS = [edit.label for edit in PAPER]
INTERVALS = "95 %: a bootstrap over photos (1,000 rounds, seed 0); of width 0 if all photos have the same result"


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
        self, files: Sequence[ReleasedPhoto], edits: Sequence[Edit], what: str, *, variants: bool = False
    ) -> np.ndarray:
        """Descriptors (P, E, D) of these files with each edit; (P, E, T, D) with query variants."""
        with self.progress(f"{self.codebook.name}: editing, {what}", len(files)) as advance:
            return describe_copies(self.extractor, files, edits, self.settings.out, advance, variants=variants)

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

"""The analysis bench: distances of released files and copies to their codes, and cells of the index."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from homing._options import setting
from homing.bench.base import PASSIVE, RECIPES_OPTION, PhotoSettings, Progress
from homing.bench.benches._analysis_figures import failures_figure, histograms_figure
from homing.bench.codebook_bench import CodebookBench
from homing.bench.data import DescriptorSet
from homing.bench.figures import Figure, numbered_name
from homing.bench.references import CollectionSearch, search_collection
from homing.bench.report import CsvTable
from homing.bench.runs import LABELS, CodebookRun, CopySearch, ReleaseResult
from homing.bench.scores import ivf_failure, published, recall_columns, recall_intervals, spread
from homing.bench.tables import Column, Columns, Row, Table, number, transposed
from homing.codebooks import Codebook
from homing.collection import Collection
from homing.edits import PAPER

UNRELATED_PAIRS = 10_000
MAX_PHOTOS = 24  # in the collection where some photos are activated
SEED = 0
_DEPTH = 100  # references that a search returns, and the last rank reported
_IDENTITY = LABELS.index("identity")  # the released file itself
_GROUPS = ("released", "edited", "unrelated")


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings(PhotoSettings):
    """Recipes; passive is always among them, for comparison."""

    recipes: Sequence[str] = setting(RECIPES_OPTION, (PASSIVE, "paper"))


@dataclass(frozen=True)
class AnalyzedRecipe:
    """A row and its copies (P, E): squared distance, whether it is in the original's cell, rank with one probe.

    `unrelated` are squared distances (N,) of unrelated pairs, the same for all recipes of a codebook.
    """

    row: Row
    search: CopySearch
    squared: np.ndarray
    same_cell: np.ndarray
    unrelated: np.ndarray


class AnalysisBench(CodebookBench[list[AnalyzedRecipe]]):
    """Measure why edited copies are found: distances to their codes, and how many fall into another cell.

    The bench also checks that activated photos do not change the results for the others. Run the same command again to
    resume it.

    Example:

        homing bench analysis --photos held-out/ --out analysis/
    """

    title = "Why edited copies are found"
    what = "Distances to the codes, and cells with one probe"
    settings_class = AnalysisSettings
    settings: AnalysisSettings

    def __init__(self, settings: AnalysisSettings, progress: Progress, command: str = "") -> None:
        super().__init__(settings, progress, command)
        self.compatibilities: list[dict[str, Any]] = []  # one for each codebook

    def measure_codebook(self, run: CodebookRun) -> None:
        """Measure each recipe, passive first, and whether activated photos change the results for others."""
        recipes, analyzed = run.supported_recipes([PASSIVE, *self.settings.recipes]), []
        unrelated = unrelated_distances(run.codebook, run.descriptors.numpy(), run.distractors)
        for recipe in recipes:
            released = run.release(recipe)
            copies = run.copies(released.files, PAPER, recipe)
            analyzed.append(_analyze(run, released, copies, unrelated))
            if recipe == PASSIVE and len(recipes) > 1 and len(released.files) > 1:
                self.compatibilities.append(measure_compatibility(run, copies, recipes[1]))
        self.measured.append(analyzed)
        self.rows.extend(each.row for each in analyzed)

    def facts(self) -> Mapping[str, object]:
        """Edits, recipes, and how distances of unrelated pairs are computed."""
        return {
            "edits": LABELS,
            "recipes": self._recipes(),
            "distances": "squared",
            "unrelated_pairs": len(self.measured[0][0].unrelated),
            "seed": SEED,
        }

    def numbers(self) -> Mapping[str, object]:
        """The codebooks, and the checks that results for other photos are the same."""
        return {**super().numbers(), "compatibility": self.compatibilities}

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """A row for each group of distances, and for each edit."""

        def mean(name: str) -> Column:
            return lambda row: f"{row[name].mean:.3f}"

        def failure_and_recall(label: str) -> Column:
            return lambda row: " / ".join(_failure_and_recall(row, label))

        checks = {(each["codebook"], each["recipe"]): _yes(each["equal"]) for each in self.compatibilities}
        columns: dict[str, Column] = {
            "mean squared distance to the code": lambda _: "",
            **{f"  {name}": mean(name) for name in _GROUPS},
            "p_f / recall, one probe": lambda _: "",
            **{f"  {label}": failure_and_recall(label) for label in LABELS},
        }
        if checks:
            columns["other photos: same results"] = lambda row: checks.get((row["codebook"], row["recipe"]), "")
        return ["", *(f"{row['codebook']},\n{row['recipe']}" for row in self.rows)], transposed(self.rows, columns)

    def tables(self) -> list[Table]:
        """Distances; cells by edit; and whether results for others stay the same."""
        distances = Table.of(
            "distances",
            "Squared distances to the code q(x_o) of the original, mean ± standard deviation: of the released "
            "file, of its copies (all fourteen edits; identity is the file itself), and of unrelated photos. "
            "For sign codes, distances are those of the index: with LSH the number of bits that differ, with RaBitQ "
            "its estimate.",
            {
                "codebook": "codebook",
                "index": "spec",
                "recipe": "recipe",
                **{name: number(name, 3) for name in _GROUPS},
            },
            self.rows,
        )
        return [distances, self._cells(), *([self._compatibility()] if self.compatibilities else [])]

    def _recipes(self) -> list[str]:
        return list(dict.fromkeys(row["recipe"] for row in self.rows))

    def _cells(self) -> Table:
        """By edit: p_f and the recall, with the paper's p_f where it is published."""
        recipes, known = self._recipes(), published()["failure"]
        rows, several = [], len(self.runs) > 1
        for run in self.runs:
            name = run.codebook.name
            # Not every codebook supports activation.
            ours = {row["recipe"]: row for row in self.rows if row["codebook"] == name}
            for label in LABELS:
                cells = [cell for recipe in recipes for cell in _failure_and_recall(ours.get(recipe), label)]
                theirs = [f"{known[recipe]:.2f}" if label == "random" else "" for recipe in recipes if recipe in known]
                rows.append([label, *[name] * several, *cells, *theirs])
        return Table(
            name="cells",
            caption="By edit: p_f, the share of copies that fall into another cell than their original, and the recall "
            f"at rank 1 with one probe. {_bound(self.rows)} Columns named SSCD are as published (Fernandez et al., "
            "2023), for the random edit and IVF4096,PQ8x8.",
            headings=[
                *("edit", *["codebook"] * several),
                *(f"{name}, {recipe}" for recipe in recipes for name in ("p_f", "recall")),
                *(f"p_f, {recipe}, SSCD" for recipe in recipes if recipe in known),
            ],
            rows=rows,
            groups=range(0, len(rows), len(LABELS)),
        )

    def _compatibility(self) -> Table:
        columns: Columns = {
            "codebook": "codebook",
            "recipe": "recipe",
            "activated": lambda row: f"{row['activated']} of {row['photos']}",
            "copies of others": "copies",
            "recall before": number("before", 3),
            "after": number("after", 3),
            "same results": lambda row: _yes(row["equal"]),
        }
        return Table.of(
            "compatibility",
            "Results for photos that are not activated, before and after others in the same collection are: "
            "all their copies are searched for with one probe. The collection holds at most the first "
            f"{MAX_PHOTOS} photos, and no distractors.",
            columns,
            self.compatibilities,
        )

    def figures(self) -> list[Figure]:
        """Two figures for each codebook."""
        figures = []
        for position, recipes in enumerate(self.measured, 1):
            figures.append(histograms_figure(numbered_name("distances", position), recipes))
            figures.append(failures_figure(numbered_name("cells", position), recipes))
        return figures

    def csv(self) -> CsvTable:
        """A row for each copy; no rank if its original is not among the nearest hundred."""
        headings = ["codebook", "recipe", "photo", "edit", "squared_distance", "same_cell", "rank"]
        return CsvTable(headings=headings, rows=self._lines())

    def _lines(self) -> Iterator[list[object]]:
        for each in chain.from_iterable(self.measured):
            for photo, source in enumerate(each.search.sources):
                for i, label in enumerate(LABELS):
                    same = "" if each.row["failure"] is None else int(each.same_cell[photo, i])
                    rank = int(each.search.ranks[photo, i])
                    head = [each.row["codebook"], each.row["recipe"], source, label]
                    yield [*head, f"{each.squared[photo, i]:.5f}", same, "" if rank < 0 else rank + 1]


def _analyze(run: CodebookRun, released: ReleaseResult, copies: np.ndarray, unrelated: np.ndarray) -> AnalyzedRecipe:
    """Squared distances ‖x̂ − q(x_o)‖² of (P, E, D) copies to the codes of the originals, cells, and ranks.

    Distances are those an index computes: for sign codes (LSH) the number of bits that differ, for RaBitQ its estimate.
    `failure` is the share of copies that fall into another cell than their original; None for a codebook without cells.
    `recall_within_bound` is true if no copy was found in another cell than its original's, so that the recall is at
    most one minus that share.
    """
    true_ids = run.true_ids(released.files)
    search = run.copy_search(released, PAPER, run.search(copies, _DEPTH, 1, released.name), 1)
    targets = run.descriptors.numpy()[true_ids]
    squared = np.stack([_squared(run.codebook, copies[:, i], targets) for i in range(len(LABELS))], axis=1)
    originals = run.cells(run.descriptors)[true_ids]
    cells = run.cells(copies.reshape(-1, copies.shape[2])).reshape(squared.shape)
    same_cell, has_cells = cells == originals[:, None], run.codebook.has_cells

    def by_edit(values: Sequence[object]) -> dict[str, object]:
        return dict(zip(LABELS, values, strict=True))

    recall = recall_columns(LABELS, search.correct)
    row = {
        **run.columns(released.name),
        "photos": len(released.files),
        "released": spread(squared[:, _IDENTITY]),
        "edited": spread(squared),
        "unrelated": spread(unrelated),
        "distance": by_edit(squared.mean(axis=0, dtype=float).tolist()),
        "failure": by_edit(ivf_failure(originals, cells).tolist()) if has_cells else None,
        "failure_interval": by_edit(recall_intervals(~same_cell).by_edit) if has_cells else None,
        "recall": recall["recall"],
        "interval": recall["interval"],
        "recall_within_bound": bool(same_cell[search.correct].all()) if has_cells else None,
    }
    return AnalyzedRecipe(row, search, squared, same_cell, unrelated)


def unrelated_distances(codebook: Codebook, originals: np.ndarray, distractors: DescriptorSet) -> np.ndarray:
    """Squared distances of distractors to the codes of (P, D) originals, for random pairs, or all if they are few.

    Where only codes of the distractors are known, these are distances of the originals to the codes of distractors.
    """
    rows = distractors.descriptors
    pairs = len(originals) * len(rows)
    sampled = np.random.default_rng(SEED).choice(pairs, min(pairs, UNRELATED_PAIRS), replace=False, shuffle=False)
    distractor, original = np.divmod(np.sort(sampled), len(originals))  # in the order of the file
    if distractors.codes is not None:
        squared: np.ndarray = np.square(originals[original] - rows[distractor].astype(np.float32)).sum(axis=1)
        return squared
    return _squared(codebook, rows[distractor], originals[original])


def _squared(codebook: Codebook, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances (N,) of (N, D) rows to the codes of (N, D) others, pair by pair."""
    squared: np.ndarray = np.square(codebook.quantizer.distances(rows.astype(np.float32), others))
    return squared


def _bound(rows: Sequence[Row]) -> str:
    """Whether the recall is within its bound 1 − p_f, as sentences."""
    without = [row["codebook"] for row in rows if row["recall_within_bound"] is None]
    sentences = []
    if len(without) < len(rows):
        sentences.append(
            "The recall is at most 1 − p_f: no copy was found in another cell."
            if all(row["recall_within_bound"] is not False for row in rows)
            else "The recall should be at most 1 − p_f, but copies were found in other cells, at equal distance."
        )
    if without:
        names = ", ".join(dict.fromkeys(without))
        sentences.append(f"{names}: an index without cells has no p_f; every search compares all references.")
    return " ".join(sentences)


def _failure_and_recall(row: Row | None, label: str) -> list[str]:
    if row is None:
        return ["", ""]
    return ["–" if row["failure"] is None else f"{row['failure'][label]:.2f}", f"{row['recall'][label]:.2f}"]


def _yes(really: bool) -> str:
    return "yes" if really else "no"


def measure_compatibility(run: CodebookRun, copies: np.ndarray, recipe: str) -> dict[str, Any]:
    """Activate half of the photos of a temporary collection and search for copies (P, E, D) of the other half.

    The collection holds at most 24 photos. The copies are of the original photos. `before` and `after` are the recall
    at rank 1, with one probe; `equal` is true if photos and distances found are the same for every copy.
    """
    photos = run.originals[:MAX_PHOTOS]
    half = len(photos) // 2
    queries = torch.from_numpy(np.array(copies[half : len(photos)]))
    names = [os.path.abspath(photo.file) for photo in photos[half:]]
    with (
        run.progress(f"{run.codebook.name}: activating other photos, {recipe}", half) as advance,
        tempfile.TemporaryDirectory(dir=run.settings.out, prefix=".compatibility-") as folder,
        Collection.create(Path(folder, "c.homing"), codebook=run.codebook, extractor=run.extractor) as collection,
    ):
        collection.add([photo.file for photo in photos])
        before = search_collection(collection, queries, names, k=1, probes=1)
        activated = 0
        for number, photo in enumerate(photos[:half]):  # a folder each: two photos may have the same name
            (outcome,) = collection.activate(photo.file, Path(folder, str(number)), recipe=recipe)
            activated += outcome.state == "activated"
            advance()
        after = search_collection(collection, queries, names, k=1, probes=1)
    return {
        "codebook": run.codebook.name,
        "recipe": recipe,
        "photos": len(photos),
        "activated": activated,
        "copies": before.ranks.size,
        "before": float(before.correct.mean()),
        "after": float(after.correct.mean()),
        "equal": _nearest(before) == _nearest(after),
    }


def _nearest(search: CollectionSearch) -> list[tuple[str, float] | None]:
    """Photo and distance of the nearest match of each copy, if there is one."""
    return [next(((match.photo, match.distance) for match in found), None) for found in search.matches]

"""The detection bench: tell copies of references from copies of other photos by the distance of the nearest match."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from homing._io.parallel import prefetch_map
from homing._options import Option, options_of, setting
from homing.bench.base import PASSIVE
from homing.bench.benches.retrieval import RetrievalSettings
from homing.bench.codebook_bench import CodebookBench
from homing.bench.data import ReleasedPhoto, refuse_inside, refuse_overlap
from homing.bench.figures import Figure, colors
from homing.bench.references import Neighbors, Probes, describe_probes, format_probes
from homing.bench.report import CsvTable
from homing.bench.runs import CodebookRun, ReleaseResult, network
from homing.bench.scores import (
    PrecisionRecall,
    average_precision,
    detection_interval,
    precision_recall,
    published_detection,
    recall_at_false_match_rate,
)
from homing.bench.tables import Column, Columns, Row, Table, cells, group_starts, number, with_interval
from homing.edits import Edit, parse
from homing.errors import HomingError, PhotoError
from homing.photo import Photo, find_photos

if TYPE_CHECKING:
    import matplotlib.figure

NEAREST = 10  # references that a search returns; each is a pair with the query
ROUNDS = 200  # of the bootstrap
Dashes = str | tuple[float, tuple[float, ...]]  # matplotlib line styles: an offset, then lengths on and off
_EXACT: Dashes = (0, (4, 2))
_OTHERS: Sequence[Dashes] = ("-", (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))


@dataclass(frozen=True, kw_only=True)
class DetectionSettings(RetrievalSettings):
    """The settings of retrieval, a folder of photos that are not references, and the edits."""

    negatives: Path = setting(Option("Photos that are not references: their copies should not match."))
    edits: Sequence[Edit] = setting(
        replace(options_of(RetrievalSettings)["edits"], default_text="random"), (parse("random"),)
    )
    max_false_match: Sequence[float] = setting(
        Option(
            "Comma-separated shares of negatives that may match.",
            read=float,
            takes="numbers from 0 to 1",
            minimum=0,
            maximum=1,
        ),
        (0.01, 0.001),
    )


@dataclass(frozen=True)
class DetectionSearch:
    """A row, its curve, and its searches.

    `sources` are the names of the positive files, then of the negative ones; each has a query for each edit, and
    `found` (Q, k) is in this order. `true_ids` (Q,) are the references the queries are copies of, -1 for negatives.
    """

    run: CodebookRun
    row: Row
    curve: PrecisionRecall
    sources: list[str]
    true_ids: np.ndarray
    found: Neighbors


class DetectionBench(CodebookBench[DetectionSearch]):
    """Measure how well copies are separated from other photos, which are edited and searched for as well.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench detection --photos held-out/ --negatives more/ --out detection/
    """

    title = "Detection of copies among other photos"
    intervals = (
        f"95 %: a bootstrap over photos ({ROUNDS} rounds, seed 0), positive and negative ones drawn separately; "
        "of width 0 if all photos have the same result"
    )
    settings_class = DetectionSettings
    settings: DetectionSettings

    def measure(self) -> None:
        """Measure each codebook with the same negatives."""
        self.negatives = self._find_negatives()
        super().measure()

    def measure_runs(self, runs: Iterator[CodebookRun]) -> None:
        """Measure these codebooks, with the negatives that can be read."""
        self._read_negatives()
        super().measure_runs(runs)

    def measure_codebook(self, run: CodebookRun) -> None:
        """Search for the copies of each recipe's files and of the negatives, with each number of probes."""
        edits, around = self.settings.edits, self.settings.pictures
        releases = [run.release(recipe) for recipe in run.supported_recipes(self.settings.recipes)]
        copies = [run.copies(released.files, edits, released.name, surroundings=around) for released in releases]
        others = run.copies(self.negatives, edits, "negatives", surroundings=around)
        for probes in run.probes(self.settings.probes):
            # Once: the negatives are the same for all recipes.
            negative = run.search(others, NEAREST, probes, "negatives")
            for released, described in zip(releases, copies, strict=True):
                positive = run.search(described, NEAREST, probes, released.name)
                found = Neighbors(*(np.concatenate(both) for both in zip(positive, negative, strict=True)))
                search = self._score(run, released, probes, found)
                self.measured.append(search)
                self.rows.append(search.row)

    def _find_negatives(self) -> list[ReleasedPhoto]:
        """The negatives, released unmodified; their seeds follow those of the photos."""
        settings, folder = self.settings, self.settings.distractor_photos
        negatives = find_photos([settings.negatives])
        photos = find_photos([settings.photos])[: settings.limit]
        distractor_photos = [] if folder is None or folder.is_file() else find_photos([folder])
        refuse_inside(settings.out, settings.negatives)
        for references, where in ((photos, "among the photos"), (distractor_photos, "among the distractors")):
            refuse_overlap(negatives, references, f"among the negatives and {where}; a negative cannot be a reference")
        return [ReleasedPhoto(str(each.name), each.path, seed) for seed, each in enumerate(negatives, len(photos))]

    def _read_negatives(self) -> None:
        """Keep the negatives that can be read, and the errors of the others."""

        def error_of(item: ReleasedPhoto) -> str:
            try:
                Photo.load(item.file).pixels()
            except PhotoError as error:
                return str(error)
            return ""

        errors = []
        with self.progress("reading the negatives", len(self.negatives)) as advance:
            for error in prefetch_map(error_of, self.negatives):
                errors.append(error)
                advance()
        self.negatives = [item for item, error in zip(self.negatives, errors, strict=True) if not error]
        if not self.negatives:
            raise HomingError(f"none of the {len(errors)} negatives can be read; the first error: {errors[0]}")
        self.failures += filter(None, errors)

    def _score(self, run: CodebookRun, released: ReleaseResult, probes: Probes, found: Neighbors) -> DetectionSearch:
        """Score the searches for copies of the files of one release, followed by those of the negatives.

        `average_precision` is the µAP. Positives and negatives are numbers of queries.
        """
        edits, negatives = len(self.settings.edits), self.negatives
        true_ids = np.append(run.true_ids(released.files), np.full(len(negatives), -1)).repeat(edits)
        searches = found.ids, found.distances, true_ids
        curve = precision_recall(*searches)
        row = {
            **run.columns(released.name),
            "probes": probes,
            "average_precision": curve.average_precision,
            "interval": detection_interval(average_precision, searches, edits, rounds=ROUNDS),
            "recall_at_false_matches": [_at_rate(searches, edits, rate) for rate in self.settings.max_false_match],
            "positives": int((true_ids >= 0).sum()),
            "negatives": int((true_ids < 0).sum()),
            "psnr": released.columns()["psnr"],
        }
        sources = [file.source for file in (*released.files, *negatives)]
        return DetectionSearch(run, row, curve, sources, true_ids, found)

    def summary(self) -> str:
        """What was measured, in one line."""
        edits = len(self.settings.edits)
        positives, negatives = len(self.runs[0].originals) * edits, len(self.negatives) * edits
        return f"Detection with {positives:,} positive and {negatives:,} negative queries: {self.among()}"

    def facts(self) -> Mapping[str, object]:
        """Negatives, edits, recipes, probes and rates."""
        return {
            "negatives": len(self.negatives),
            "edits": self.settings.labels,
            "recipes": self.settings.recipes,
            "probes": self.settings.probes,
            "nearest": NEAREST,
            "max_false_match": self.settings.max_false_match,
        }

    def numbers(self) -> Mapping[str, object]:
        """The codebooks, and the curves."""
        return {**super().numbers(), "curve": [_curve(search) for search in self.measured]}

    @property
    def _rates(self) -> dict[str, Column]:
        """The columns of the recall at each rate of false matches, and of the PSNR."""

        def recall(row: Row, number: int) -> str:
            point = row["recall_at_false_matches"][number]
            return with_interval(point["recall"], point["interval"])

        columns: dict[str, Column] = {
            f"recall at {100 * rate:g} % false matches": partial(recall, number=number)
            for number, rate in enumerate(self.settings.max_false_match)
        }
        return {**columns, "PSNR, dB": number("psnr", 1)}

    def _probes(self, row: Row) -> str:
        return format_probes(row["probes"], self.has_cells[row["codebook"]])

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """The scores of each recipe and number of probes."""
        columns: Columns = {
            "codebook": "codebook",
            "probes": self._probes,
            "recipe": "recipe",
            "µAP": number("average_precision", 3),
            "95 %": lambda row: "{:.3f}–{:.3f}".format(*row["interval"]),
            **self._rates,
        }
        return list(columns), [cells(row, columns) for row in self.rows]

    def tables(self) -> list[Table]:
        """The paper's table of indexes, with a row for each recipe."""

        def paper(row: Row) -> str:
            return published_detection(row["spec"], row["probes"], row["recipe"], self.settings.labels)

        has_gains, has_published = any(map(self._gain, self.rows)), any(map(paper, self.rows))
        columns: dict[str, Column] = {
            "network": network,
            "index": lambda row: "none" if row["probes"] == "exact" else row["spec"],
            "probes": self._probes,
            "recipe": "recipe",
            "µAP (95 % interval)": lambda row: with_interval(row["average_precision"], row["interval"]),
        }
        columns |= {"gain": self._gain} if has_gains else {}
        columns |= {"published": paper} if has_published else {}
        caption = self._caption(has_gains=has_gains, has_published=has_published)
        groups = group_starts([(row["codebook"], row["probes"]) for row in self.rows])
        return [Table.of("table", caption, columns | self._rates, self.rows, groups=groups)]

    def _gain(self, row: Row) -> str:
        """The µAP of a recipe divided by that of passive photos, if it was measured and is not 0."""
        for other in self.rows:
            same = (other["codebook"], other["probes"]) == (row["codebook"], row["probes"])
            if same and other["recipe"] == PASSIVE != row["recipe"] and other["average_precision"]:
                return f"×{row['average_precision'] / other['average_precision']:.2f}"
        return ""

    def _caption(self, *, has_gains: bool, has_published: bool) -> str:
        rates, negatives = self.settings.max_false_match, len(self.negatives) * len(self.settings.edits)
        text = "Detection of copies: µAP, the area under precision and recall of all pairs of a query and one of its "
        text += f"{NEAREST} nearest references. Exact search is the upper bound."
        if has_gains:
            text += " Gain: the µAP divided by that of passive photos."
        if has_published:
            text += " Published: µAP or gain with SSCD (Fernandez et al., 2023), 10,000 positive and 40,000 negative "
            text += "queries among a million references."
        if rates:
            text += " Recall at a rate: the share of positive queries whose own photo is nearest, and nearer than the "
            text += "threshold at which this rate of the negative queries has a false match."
        if any(0 < rate < 1 / negatives for rate in rates):
            text += f" With {negatives:,} negative queries, a rate below {100 / negatives:.2g} % allows no false match."
        return text

    def figures(self) -> list[Figure]:
        """Precision against recall for the first codebook: a color for each recipe, a line style for each probes."""
        run = self.runs[0]
        searches = [search for search in self.measured if search.run is run]
        color = colors(list(dict.fromkeys(search.row["recipe"] for search in searches)))
        lines = [search for recipe in color for search in searches if search.row["recipe"] == recipe]
        numbers = dict.fromkeys(search.row["probes"] for search in lines if search.row["probes"] != "exact")
        dashes: dict[Probes, Dashes] = {probes: _OTHERS[i % len(_OTHERS)] for i, probes in enumerate(numbers)}

        def draw(canvas: matplotlib.figure.Figure) -> None:
            axes = canvas.subplots()
            for search in lines:
                row, curve = search.row, search.curve.downsampled()
                how = describe_probes(row["probes"], run.codebook.has_cells)
                axes.plot(
                    [*(0 * curve.recall[:1]), *curve.recall],  # starts at recall 0, unless nothing was found
                    [*curve.precision[:1], *curve.precision],
                    color=color[row["recipe"]],
                    linestyle=dashes.get(row["probes"], _EXACT),
                    label=f"{row['recipe']}, {how}: {row['average_precision']:.3f}",
                    clip_on=False,
                )
            axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="recall", ylabel="precision")
            columns = min(len(color), 2)
            canvas.legend(title="µAP", loc="outside lower left", ncols=columns, alignment="left", handlelength=2.8)

        caption = f"Precision and recall at all thresholds, {run.codebook.name}."
        return [Figure(name="precision-recall", caption=caption, draw=draw, size=(5.4, 4.8))]

    def csv(self) -> CsvTable:
        """A row for each search."""
        return CsvTable(
            headings=["codebook", "recipe", "probes", "kind", "photo", "edit", "found", "distance", "is_correct"],
            rows=self._lines(),
        )

    def _lines(self) -> Iterator[list[object]]:
        for search in self.measured:
            row, found = search.row, search.found
            names = [original.source for original in search.run.originals]
            copies = [(source, label) for source in search.sources for label in self.settings.labels]
            for query, (copy, true_id) in enumerate(zip(copies, search.true_ids.tolist(), strict=True)):
                kind, is_correct = "negative" if true_id < 0 else "positive", true_id == found.ids[query, 0] >= 0
                head = [row["codebook"], row["recipe"], row["probes"], kind]
                yield [*head, *copy, *found.nearest(query, names), int(is_correct)]


def _at_rate(searches: tuple[np.ndarray, np.ndarray, np.ndarray], edits: int, rate: float) -> dict[str, Any]:
    """The recall at the threshold that at most this rate of the negative queries passes; None if all are accepted."""
    recall, threshold = recall_at_false_match_rate(*searches, rate)

    def recall_of(ids: np.ndarray, distances: np.ndarray, true_ids: np.ndarray) -> float:
        return recall_at_false_match_rate(ids, distances, true_ids, rate).recall

    interval = detection_interval(recall_of, searches, edits, rounds=ROUNDS)
    finite = threshold if math.isfinite(threshold) else None
    return {"rate": rate, "recall": recall, "interval": interval, "threshold": finite}


def _curve(search: DetectionSearch) -> dict[str, object]:
    curve = search.curve.downsampled()
    numbers = {"recall": curve.recall, "precision": curve.precision, "threshold": curve.thresholds}
    return {
        **{name: search.row[name] for name in ("codebook", "recipe", "probes")},
        **{name: [round(float(value), 6) for value in values] for name, values in numbers.items()},
    }

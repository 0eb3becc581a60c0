"""The search bench: recall and cost of each search option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from homing import codebooks
from homing._options import Option, setting
from homing.bench.base import PASSIVE, RECIPES_OPTION, PhotoSettings
from homing.bench.codebook_bench import CodebookBench
from homing.bench.figures import Figure, colors, numbered_name
from homing.bench.references import Probes
from homing.bench.release import ReleaseResult
from homing.bench.report import CsvTable
from homing.bench.runs import INTERVALS, LABELS, CodebookRun, CopySearch
from homing.bench.scores import gain_interval, recall_columns
from homing.bench.tables import Column, Row, Table, cells, fixed, with_interval
from homing.collection.search import VARIANTS
from homing.edits import PAPER
from homing.errors import HomingError

if TYPE_CHECKING:
    import matplotlib.figure

RERANK = 100  # references that are compared again
_TOP_K = 10  # the default of `Collection.search`
_MARKERS = "o<^>vdsDPX*"  # one for each option


@dataclass(frozen=True, kw_only=True)
class SearchOption:
    """Options of `Collection.search`, or exact search."""

    probes: Probes | None = None
    probe_radius: float | None = None
    variants: bool = False
    rerank: int | None = None

    @property
    def name(self) -> str:
        """The options as words."""
        if self.probes == "exact":
            return "exact"
        cells = (
            f"probe radius {self.probe_radius:g}"
            if self.probe_radius is not None
            else f"{self.probes} probe" + "s" * (self.probes != 1)
        )
        return cells + ", variants" * self.variants + ", re-ranked" * (self.rerank is not None)


# The first is the baseline.
SEARCH_OPTIONS = (
    SearchOption(probes=1),
    SearchOption(probe_radius=0.05),
    SearchOption(probe_radius=0.1),
    SearchOption(probe_radius=0.2),
    SearchOption(probes=16),
    SearchOption(probes=1, variants=True),
    SearchOption(probes=1, rerank=RERANK),
    SearchOption(probe_radius=0.1, rerank=RERANK),
    SearchOption(probes=16, rerank=RERANK),
    SearchOption(probe_radius=0.1, variants=True, rerank=RERANK),
    SearchOption(probes="exact"),
)


@dataclass(frozen=True, kw_only=True)
class SearchBenchSettings(PhotoSettings):
    """The recipe to compare with passive."""

    recipe: str = setting(
        Option(
            "The recipe for activation; list recipes with: homing recipes. Passive releases are measured as well.",
            choices=RECIPES_OPTION.choices,
            kind="recipe",
        ),
        "homing",
    )


class SearchBench(CodebookBench):
    """Measure the recall and the cost of each search option: probe radius, variants, re-ranking.

    Each copy is described in five variants. Run the same command again to resume it: descriptors and
    released files stay in the out folder.

    Example:

        homing bench search --photos held-out/ --out search/
    """

    title = "Recall and cost of search options"
    settings_class = SearchBenchSettings
    settings: SearchBenchSettings

    def measure(self) -> None:
        """Measure each codebook; one without cells is refused."""
        for book in map(codebooks.load, self.settings.books):
            if not book.has_cells:
                raise HomingError(
                    f"'{book.name}' ({book.spec}) has no cells to select; give a codebook of an IVF index"
                )
        super().measure()

    def measure_codebook(self, run: CodebookRun) -> None:
        """Search for the copies of the files of each recipe, with each option."""
        for recipe in run.supported_recipes([PASSIVE, self.settings.recipe]):
            release_result = run.release(recipe)
            copies = run.copies(release_result.files, PAPER, f"{recipe}, all variants", variants=True)
            baseline: CopySearch | None = None
            with run.progress(f"{run.codebook.name}: searching, {recipe}", len(SEARCH_OPTIONS)) as advance:
                for option in SEARCH_OPTIONS:
                    search, costs = _search(run, recipe, release_result, copies, option)
                    baseline = baseline or search
                    self.searches.append(search)
                    self.rows.append(_row(search, baseline, release_result, option, costs))
                    advance()

    def summary(self) -> str:
        """What was measured, in one line."""
        return f"Recall at rank 1 of edited copies: {self.among()}"

    def about(self) -> Mapping[str, object]:
        """The settings as results.json and the page show them."""
        return {
            **self.counts(),
            "edits": LABELS,
            "recipe": self.settings.recipe,
            "searches": [option.name for option in SEARCH_OPTIONS],
            "intervals": INTERVALS,
        }

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Recall, gain and cost of each option."""
        columns: dict[str, Column] = {"recall": lambda row: f"{row['mean']:.3f}", "gain": _gain}
        columns = {**_FIRST_COLUMNS, **columns, **_COSTS}
        return list(columns), [cells(row, columns.values()) for row in self.rows]

    def tables(self) -> list[Table]:
        """Recall, gain and cost of each option; and the recall by edit."""
        columns: dict[str, Column] = {
            **_FIRST_COLUMNS,
            "mean, 95 % interval": lambda row: with_interval(row["mean"], row["mean_interval"]),
            "gain": lambda row: (
                _gain(row) and f"{_gain(row)} ({' to '.join(f'{e:+.3f}' for e in row['gain_interval'])})"
            ),
            **_COSTS,
        }
        groups = range(len(SEARCH_OPTIONS), len(self.rows), len(SEARCH_OPTIONS))
        return [
            Table(
                name="table",
                caption="Recall at rank 1, mean of the fourteen edits, with its 95 % interval, and its gain over one "
                "probe. Then the cost of a query: codes and full descriptors compared, its time on one core, passes of "
                "the network. Probe radius: all cells whose centers are at most this much farther than the nearest, in "
                "squared distance. Variants: the query as it is, in quarter turns, and mirrored, "
                f"{VARIANTS} in all. Re-ranked: the {RERANK} nearest, by full descriptors.",
                headings=list(columns),
                rows=[cells(row, columns.values()) for row in self.rows],
                groups=groups,
            ),
            Table(
                name="edits",
                caption="Recall at rank 1 by edit.",
                headings=[*_FIRST_COLUMNS, *LABELS],
                rows=[
                    [*cells(row, _FIRST_COLUMNS.values()), *(f"{recall:.2f}" for recall in row["recall"].values())]
                    for row in self.rows
                ],
                groups=groups,
            ),
        ]

    def figures(self) -> list[Figure]:
        """Recall against cost, for each codebook."""
        names = [run.codebook.name for run in self.runs]
        return [
            _figure(numbered_name("search", number), name, [row for row in self.rows if row["codebook"] == name])
            for number, name in enumerate(names, 1)
        ]

    def csv(self) -> CsvTable:
        """A row for each search."""
        return CsvTable(
            headings=["search" if each == "probes" else each for each in CopySearch.HEADINGS],
            rows=(line for search in self.searches for line in search.lines()),
        )


def _search(
    run: CodebookRun, recipe: str, release_result: ReleaseResult, copies: np.ndarray, option: SearchOption
) -> tuple[CopySearch, dict[str, float | None]]:
    """Search for (P, E, T, D) copies, of which variant 0 is the copy itself; with the costs of a query."""
    references, probes, rerank = run.references, option.probes, option.rerank
    queries = copies.reshape(-1, *copies.shape[2:]) if option.variants else copies[:, :, 0].reshape(-1, copies.shape[3])
    found = references.search(queries, rerank or _TOP_K, probes, probe_radius=option.probe_radius, rerank=rerank)
    costs: dict[str, float | None] = {"codes": 0.0, "descriptors": float(len(references)), "milliseconds": None}
    if probes != "exact":
        costs["codes"] = float(references.codes_scanned(queries, probes, option.probe_radius).mean())
        costs["descriptors"] = 0.0 if rerank is None else float((found.ids >= 0).sum(axis=1).mean())
        costs["milliseconds"] = references.search_ms(
            queries, _TOP_K, probes, probe_radius=option.probe_radius, rerank=rerank
        )
    return run.copy_search(recipe, release_result.files, PAPER, found, option.name), costs


def _row(
    search: CopySearch,
    baseline: CopySearch,
    release_result: ReleaseResult,
    option: SearchOption,
    costs: Mapping[str, float | None],
) -> Row:
    """Recall at rank 1 with one search option, its gain over the baseline, and its cost."""
    return {
        **search.run.columns(search.recipe),
        "search": option.name,
        **vars(option),
        **recall_columns(LABELS, search.correct),
        "gain": float(search.correct.mean() - baseline.correct.mean()),
        "gain_interval": gain_interval(baseline.correct, search.correct),
        **costs,
        "passes": VARIANTS if option.variants else 1,
        "photos": len(release_result.files),
        "activated": len(release_result.qualities),
    }


def _gain(row: Row) -> str:
    return "" if row["search"] == SEARCH_OPTIONS[0].name else f"{row['gain']:+.3f}"


_FIRST_COLUMNS: dict[str, Column] = {"codebook": "codebook", "recipe": "recipe", "search": "search"}
_COSTS: dict[str, Column] = {
    "codes": lambda row: f"{row['codes']:,.0f}",
    "descriptors": lambda row: f"{row['descriptors']:,.0f}",
    "ms": lambda row: fixed(row["milliseconds"], 2),
    "passes": "passes",
}


def _figure(name: str, codebook: str, rows: Sequence[Row]) -> Figure:
    """Recall against cost: a color for each recipe, a marker for each option."""
    color = colors(list(dict.fromkeys(row["recipe"] for row in rows)))
    markers = dict(zip((option.name for option in SEARCH_OPTIONS), _MARKERS, strict=True))

    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        for row in rows:
            low, high = row["mean_interval"]
            axes.errorbar(
                [row["codes"] + row["descriptors"]],
                [row["mean"]],
                yerr=[[row["mean"] - low], [high - row["mean"]]],
                fmt=markers[row["search"]],
                color=color[row["recipe"]],
                markersize=6,
                elinewidth=0.7,
            )
        for recipe in color:
            axes.plot([], [], "s", color=color[recipe], label=recipe)
        for option, marker in markers.items():
            axes.plot([], [], marker, color="none", markeredgecolor="black", label=option)
        axes.set_xscale("log")
        axes.set_xlabel("codes and descriptors compared per query")
        axes.set_ylabel("recall at rank 1")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    return Figure(
        name=name,
        caption="Recall, mean of the fourteen edits with 95 % intervals, against the number of comparisons per query, "
        f"{codebook}.",
        draw=draw,
        size=(8.0, 4.4),
    )

"""The search bench: recall and cost of each search option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from homing import codebooks
from homing._options import Option, setting
from homing.bench.base import PASSIVE, RECIPES_OPTION, CopySettings, PhotoSettings
from homing.bench.codebook_bench import CodebookBench
from homing.bench.figures import Figure, colors, numbered_name
from homing.bench.references import Probes
from homing.bench.runs import CodebookRun, CopySearch, ReleaseResult
from homing.bench.scores import gain_interval, recall_columns
from homing.bench.tables import Columns, Row, Table, by_label, cells, number, with_interval
from homing.collection.search import VARIANTS
from homing.edits import Edit
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
class SearchBenchSettings(CopySettings, PhotoSettings):
    """The recipe to compare with passive, and the edits."""

    recipe: str = setting(
        Option(
            "The recipe for activation; list recipes with: homing recipes. Passive releases are measured as well.",
            choices=RECIPES_OPTION.choices,
            kind="recipe",
        ),
        "homing",
    )


class SearchBench(CodebookBench[None]):
    """Measure the recall and the cost of each search option: probe radius, variants, re-ranking.

    Each copy is described in five variants. Run the same command again to resume it: descriptors and
    released files stay in the out folder.

    Example:

        homing bench search --photos held-out/ --out search/
    """

    title = "Recall and cost of search options"
    what = "Recall at rank 1 of edited copies"
    csv_headings = ("codebook", "recipe", "search", *CopySearch.HEADINGS[3:])
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
            released = run.release(recipe)
            copies = run.copies(
                released.files,
                self.settings.edits,
                f"{recipe}, all variants",
                surroundings=self.settings.pictures,
                variants=True,
            )
            baseline: CopySearch | None = None
            with run.progress(f"{run.codebook.name}: searching, {recipe}", len(SEARCH_OPTIONS)) as advance:
                for option in SEARCH_OPTIONS:
                    search, costs = _search(run, released, copies, self.settings.edits, option)
                    baseline = baseline or search
                    self.searches.append(search)
                    self.rows.append(
                        {
                            **run.columns(recipe),
                            "search": option.name,
                            **vars(option),
                            **recall_columns(search.labels, search.correct),
                            "gain": float(search.correct.mean() - baseline.correct.mean()),
                            "gain_interval": gain_interval(baseline.correct, search.correct),
                            **costs,
                            "passes": VARIANTS if option.variants else 1,
                            "photos": len(released.files),
                            "activated": len(released.qualities),
                        }
                    )
                    advance()

    def facts(self) -> Mapping[str, object]:
        """Edits, recipe and search options."""
        searches = [option.name for option in SEARCH_OPTIONS]
        return {"edits": self.settings.labels, "recipe": self.settings.recipe, "searches": searches}

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Recall, gain and cost of each option."""
        columns: Columns = {**_FIRST_COLUMNS, "recall": number("mean", 3), "gain": _gain, **_COSTS}
        return list(columns), [cells(row, columns) for row in self.rows]

    def tables(self) -> list[Table]:
        """Recall, gain and cost of each option; and the recall by edit."""
        columns: Columns = {
            **_FIRST_COLUMNS,
            "mean, 95 % interval": lambda row: with_interval(row["mean"], row["mean_interval"]),
            "gain": lambda row: _gain(row) and _gain(row) + " ({:+.3f} to {:+.3f})".format(*row["gain_interval"]),
            **_COSTS,
        }
        groups = range(len(SEARCH_OPTIONS), len(self.rows), len(SEARCH_OPTIONS))
        return [
            Table.of(
                "table",
                "Recall at rank 1, mean of the fourteen edits, with its 95 % interval, and its gain over one "
                "probe. Then the cost of a query: codes and full descriptors compared, its time on one core, passes of "
                "the network. Probe radius: all cells whose centers are at most this much farther than the nearest, in "
                "squared distance. Variants: the query as it is, in quarter turns, and mirrored, "
                f"{VARIANTS} in all. Re-ranked: the {RERANK} nearest, by full descriptors.",
                columns,
                self.rows,
                groups=groups,
            ),
            Table.of(
                "edits",
                "Recall at rank 1 by edit.",
                {**_FIRST_COLUMNS, **by_label("recall", self.settings.labels, 2)},
                self.rows,
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


def _search(
    run: CodebookRun, released: ReleaseResult, copies: np.ndarray, edits: Sequence[Edit], option: SearchOption
) -> tuple[CopySearch, dict[str, float | None]]:
    """Search for (P, E, T, D) copies, of which variant 0 is the copy itself; with the costs of a query."""
    references, probes, radius, rerank = run.references, option.probes, option.probe_radius, option.rerank
    queries = copies.reshape(-1, *copies.shape[2:]) if option.variants else copies[:, :, 0].reshape(-1, copies.shape[3])
    found = references.search(queries, rerank or _TOP_K, probes, probe_radius=radius, rerank=rerank)
    costs: dict[str, float | None] = {"codes": 0.0, "descriptors": float(len(references)), "milliseconds": None}
    if probes != "exact":
        costs = {
            "codes": float(references.codes_scanned(queries, probes, radius).mean()),
            "descriptors": 0.0 if rerank is None else float((found.ids >= 0).sum(axis=1).mean()),
            "milliseconds": references.search_ms(queries, _TOP_K, probes, probe_radius=radius, rerank=rerank),
        }
    return run.copy_search(released, edits, found, option.name), costs


def _gain(row: Row) -> str:
    return "" if row["search"] == SEARCH_OPTIONS[0].name else f"{row['gain']:+.3f}"


_FIRST_COLUMNS: Columns = {"codebook": "codebook", "recipe": "recipe", "search": "search"}
_COSTS: Columns = {
    "codes": lambda row: f"{row['codes']:,.0f}",
    "descriptors": lambda row: f"{row['descriptors']:,.0f}",
    "ms": number("milliseconds", 2),
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
        axes.set(xscale="log", xlabel="codes and descriptors compared per query", ylabel="recall at rank 1")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    return Figure(
        name=name,
        caption="Recall, mean of the fourteen edits with 95 % intervals, against the number of comparisons per query, "
        f"{codebook}.",
        draw=draw,
        size=(8.0, 4.4),
    )

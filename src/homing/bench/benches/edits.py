"""The edits bench: recall at every strength of an edit, as in the figure of the paper's appendix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from homing._options import Option, setting
from homing.bench.base import PASSIVE, PROBES_OPTION, RECIPES_OPTION, PhotoSettings
from homing.bench.benches.retrieval import RANKS
from homing.bench.codebook_bench import CodebookBench
from homing.bench.figures import Figure, colors, numbered_name
from homing.bench.references import Probes, describe_probes
from homing.bench.runs import CodebookRun, CopySearch
from homing.bench.scores import recall_at, recall_intervals
from homing.bench.tables import Row, Table, with_interval
from homing.edits import SWEEPS

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

# The unit of the strength of each family.
_STRENGTH = {
    "rotation": "angle in degrees",
    "crop": "share of the area kept",
    "resize": "share of the area left",
    "blur": "sigma in pixels",
    "jpeg": "quality",
    "contrast": "factor",
    "brightness": "factor",
    "hue": "share of a full turn",
}
# Where the default of matplotlib is hard to read.
_TICKS = {"rotation": (-90, -45, 0, 45, 90), "hue": (-0.4, -0.2, 0, 0.2, 0.4)}
_ACROSS = 4


@dataclass(frozen=True, kw_only=True)
class EditsSettings(PhotoSettings):
    """Recipes, probes of a search, and the families of edits."""

    probes: Sequence[Probes] = setting(PROBES_OPTION, (1,))
    recipes: Sequence[str] = setting(RECIPES_OPTION, (PASSIVE, "paper"))
    families: Sequence[str] = setting(
        Option(
            "Comma-separated edits of the copies: rotation, crop, resize, blur, jpeg, contrast, brightness, hue.",
            default_text="all",
            read=str,
            choices=lambda: SWEEPS,
            kind="family of edits",
        ),
        tuple(SWEEPS),
    )


class _Line(NamedTuple):
    """Identifies a line of a figure, or a row of a table."""

    recipe: str
    codebook: str
    search: str


@dataclass(frozen=True)
class Sweep:
    """The search results for the copies of one release with the edits of one family, and a row for each strength."""

    line: _Line
    family: str
    search: CopySearch
    rows: list[Row]

    @property
    def mean(self) -> float:
        """The mean recall over the strengths."""
        return float(self.search.correct.mean())


class EditsBench(CodebookBench[Sweep]):
    """Measure recall by strength of an edit: copies are rotated, cropped, blurred more and more, and searched for.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench edits --photos held-out/ --families rotation,crop --out edits/
    """

    title = "Recall by strength of the edit"
    what = "Recall at rank 1 of copies at increasing strengths of edits"
    settings_class = EditsSettings
    settings: EditsSettings

    def measure_codebook(self, run: CodebookRun) -> None:
        """Search for the copies with each family of edits, of each recipe's files, with each number of probes."""
        for recipe in run.supported_recipes(self.settings.recipes):
            released = run.release(recipe)
            for family in self.settings.families:
                edits, what = SWEEPS[family], f"{recipe}, {family}"
                copies = run.copies(released.files, edits, what)  # cached by family: another run may add families
                for probes in run.probes(self.settings.probes):
                    search = run.copy_search(released, edits, run.search(copies, max(RANKS), probes, what), probes)
                    line = _Line(recipe, run.codebook.name, describe_probes(probes, run.codebook.has_cells))
                    rows = _rows(search, family)
                    self.measured.append(Sweep(line, family, search, rows))
                    self.searches.append(search)
                    self.rows.extend(rows)

    def facts(self) -> Mapping[str, object]:
        """Families, recipes and probes."""
        settings = self.settings
        return {"families": settings.families, "recipes": settings.recipes, "probes": settings.probes}

    def _lines(self) -> dict[_Line, list[Sweep]]:
        """The sweeps of all families, by line."""
        lines: dict[_Line, list[Sweep]] = {}
        for sweep in self.measured:
            lines.setdefault(sweep.line, []).append(sweep)
        return lines

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Means over the strengths of each family."""
        lines = self._lines()
        headings = ["mean over", *(f"{line.codebook},\n{line.recipe},\n{line.search}" for line in lines)]
        families = zip(self.settings.families, *lines.values(), strict=True)
        return headings, [[family, *(f"{sweep.mean:.3f}" for sweep in sweeps)] for family, *sweeps in families]

    def tables(self) -> list[Table]:
        """The mean recall of each family, then the recall of each family at each strength."""
        means = {
            line: [with_interval(sweep.mean, recall_intervals(sweep.search.correct).mean) for sweep in sweeps]
            for line, sweeps in self._lines().items()
        }
        caption = "Recall at rank 1, mean over all strengths of a family, with its 95 % interval"
        tables = [_table("families", caption, self.settings.families, means)]
        for family in self.settings.families:
            sweeps = [sweep for sweep in self.measured if sweep.family == family]
            cells = {sweep.line: [f"{row['recall']:.2f}" for row in sweep.rows] for sweep in sweeps}
            caption = f"Recall at rank 1 after {family}, by {_STRENGTH[family]}"
            strengths = [f"{edit.strength or 0:g}".replace("-", "−") for edit in SWEEPS[family]]
            tables.append(_table(family, caption, strengths, cells))
        return tables

    def figures(self) -> list[Figure]:
        """A figure for each codebook and number of probes: a panel for each family, a line for each recipe."""
        together: dict[tuple[str, str], list[Sweep]] = {}
        for sweep in self.measured:
            together.setdefault((sweep.line.codebook, sweep.line.search), []).append(sweep)
        return [
            _figure(numbered_name("sweeps", number), f"{codebook}, {search}", sweeps)
            for number, ((codebook, search), sweeps) in enumerate(together.items(), 1)
        ]


def _rows(search: CopySearch, family: str) -> list[Row]:
    """The recall at rank 1 at each strength."""
    intervals = recall_intervals(search.correct).by_edit
    return [
        {
            **search.run.columns(search.recipe),
            "probes": search.search,
            "family": family,
            "edit": edit.label,
            "strength": float(edit.strength or 0),
            "recall": recall_at(search.ranks[:, i], 1),
            "interval": intervals[i],
            "photos": len(search.ranks),
        }
        for i, edit in enumerate(SWEEPS[family])
    ]


def _table(name: str, caption: str, headings: Sequence[str], cells: Mapping[_Line, Sequence[str]]) -> Table:
    """A table with a row for each recipe; codebook and search are columns if there are several, else in the caption."""
    differ = [field for field in ("codebook", "search") if len({getattr(line, field) for line in cells}) > 1]
    columns = ["recipe", *differ]
    first = next(iter(cells))
    alike = [getattr(first, field) for field in ("codebook", "search") if field not in differ]
    return Table(
        name=name,
        caption=", ".join([caption, *alike]) + ".",
        headings=[*columns, *headings],
        rows=[[*(getattr(line, column) for column in columns), *row] for line, row in cells.items()],
    )


def _figure(name: str, what: str, sweeps: Sequence[Sweep]) -> Figure:
    families = list(dict.fromkeys(sweep.family for sweep in sweeps))
    color = colors(list(dict.fromkeys(sweep.line.recipe for sweep in sweeps)))
    across = min(len(families), _ACROSS)
    down = -(-len(families) // across)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, family in zip(panels, families, strict=False):
            _panel(axes, [sweep for sweep in sweeps if sweep.family == family], color)
        for axes in panels[len(families) :]:
            axes.set_visible(False)
        for axes in panels[::across]:
            axes.set_ylabel("recall at rank 1")
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(color))

    return Figure(
        name=name,
        caption=f"Recall at rank 1 against the strength of the edit, with 95 % intervals, {what}. At the strength "
        "that changes nothing, the copy is the released file itself.",
        draw=draw,
        size=(2.6 * across, 0.4 + 2.4 * down),
    )


def _panel(axes: matplotlib.axes.Axes, sweeps: Sequence[Sweep], color: dict[str, str]) -> None:
    """The panel of one family: a line for each recipe, its interval shaded."""
    for sweep in sweeps:
        strengths, line = [row["strength"] for row in sweep.rows], color[sweep.line.recipe]
        lows, highs = zip(*(row["interval"] for row in sweep.rows), strict=True)
        axes.fill_between(strengths, lows, highs, color=line, alpha=0.18, linewidth=0)
        axes.plot(strengths, [row["recall"] for row in sweep.rows], "o-", color=line, label=sweep.line.recipe)
    family = sweeps[0].family
    axes.set(title=family, xlabel=_STRENGTH[family], ylim=(0, 1.03))
    if family in _TICKS:
        axes.set_xticks(_TICKS[family])

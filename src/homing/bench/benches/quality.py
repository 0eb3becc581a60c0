"""The quality bench: visual quality and recall of activated files, at several strengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from homing._options import Option, setting
from homing.activation import RECIPES, Recipe, resolve_recipe
from homing.bench.base import PASSIVE, PhotoSettings, Progress
from homing.bench.benches._quality_photos import (
    ReleaseQuality,
    budgets_figure,
    measure_lpips,
    photo_qualities,
    picture_rows,
    trade_off_figure,
)
from homing.bench.codebook_bench import CodebookBench
from homing.bench.figures import Figure, numbered_name
from homing.bench.references import describe_probes
from homing.bench.report import CsvTable, PictureRow
from homing.bench.runs import CodebookRun, network
from homing.bench.scores import PAPER_INDEX, Spread, average_precision, published, recall_intervals, spread
from homing.bench.tables import Columns, Row, Table, cells, group_starts, number, with_interval
from homing.edits import PAPER, parse
from homing.errors import HomingError
from homing.perception import JND, Budget, budget_named
from homing.perception.quality import load_lpips

PSNRS = (50.0, 46.0, 43.8, 40.0, 36.0, 32.0)
NEAREST = 10  # references that a search returns, for the µAP
_UNEDITED = PAPER.index(parse("identity"))


@dataclass(frozen=True, kw_only=True)
class QualitySettings(PhotoSettings):
    """Recipes, and strengths besides their own, as PSNRs or the paper's alphas; and budgets, compared at one PSNR."""

    recipes: Sequence[str] = setting(
        Option(
            "Comma-separated recipes; list recipes with: homing recipes.",
            read=str,
            choices=lambda: RECIPES,
            kind="recipe",
        ),
        ("paper",),
    )
    psnrs: Sequence[float] | None = setting(
        Option(
            "Comma-separated strengths, in dB.",
            default_text=",".join(f"{psnr:g}" for psnr in PSNRS),
            read=float,
            takes="numbers",
        ),
        None,
    )
    alphas: Sequence[float] | None = setting(
        Option("Comma-separated strengths as in the paper, instead of PSNRs.", read=float, takes="numbers"), None
    )
    budgets: Sequence[str] = setting(
        Option("Comma-separated budgets to compare.", read=str), ("jnd", "jnd-printed", "linf")
    )
    # The default is that of the paper's figure: there the L∞ budget is a whole step of 8 bits, so that it can be met.
    budgets_at: float = setting(Option("The PSNR at which budgets are compared, in dB."), 36.0)
    probes: int = setting(Option("How many cells to scan.", minimum=1), 1)
    pictures: int = setting(Option("How many photos to show in the report.", minimum=0), 4)
    lpips: bool = setting(Option("Measure LPIPS as well. It needs homing[lpips] and the weights of AlexNet."), False)

    def __post_init__(self) -> None:
        if PASSIVE in self.recipes:
            raise HomingError("passive has no strength and is always measured; remove it from the recipes")
        super().__post_init__()
        if self.psnrs is not None and self.alphas is not None:
            raise HomingError("strengths are given as psnrs or as alphas, got both; give one of them")
        self.strengths(), self.compared_budgets()  # raise for invalid values

    def strengths(self) -> list[JND]:
        """The strengths as budgets."""
        if self.alphas is not None:
            return [JND(alpha=alpha) for alpha in self.alphas]
        return [JND(psnr=psnr) for psnr in (PSNRS if self.psnrs is None else self.psnrs)]

    def compared_budgets(self) -> list[Budget]:
        """The budgets to compare."""
        return [budget_named(name)(psnr=self.budgets_at) for name in self.budgets]


class QualityBench(CodebookBench[ReleaseQuality]):
    """Measure PSNR, SSIM and L∞ of the written files, and the recall, for several strengths.

    Budgets are compared at one PSNR, as in the paper.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench quality --photos held-out/ --psnrs 46,40,34 --out quality/
    """

    title = "Visual quality of activated photos"
    what = "Quality of the files as written, and recall of their edited copies"
    settings_class = QualitySettings
    settings: QualitySettings

    def __init__(self, settings: QualitySettings, progress: Progress, command: str = "") -> None:
        super().__init__(settings, progress, command)
        self.strengths: list[ReleaseQuality] = []  # passive, then each recipe from the highest PSNR to the lowest
        self.budgets: list[ReleaseQuality] = []  # each recipe with each kind of budget

    def measure(self) -> None:
        """Measure each codebook."""
        self._distance = load_lpips() if self.settings.lpips else None
        super().measure()

    def measure_codebook(self, run: CodebookRun) -> None:
        """Measure passive, and each recipe at each strength and with each budget."""
        strengths, budgets = [self._measure(run, None, None)], []
        for name in run.supported_recipes(self.settings.recipes):
            if name == PASSIVE:
                continue
            recipe = resolve_recipe(name)
            varied = dict.fromkeys([recipe, *(at_strength(recipe, budget) for budget in self.settings.strengths())])
            compared = [at_strength(recipe, budget) for budget in self.settings.compared_budgets()]
            found = {each: self._measure(run, recipe, each) for each in dict.fromkeys([*varied, *compared])}
            # A strength at which no file was activated has no PSNR and comes first.
            strengths += sorted((found[each] for each in varied), key=_strength)
            budgets += [found[each] for each in compared]
        self.strengths += strengths
        self.budgets += budgets
        releases = {each.row["release"]: each for each in (*strengths, *budgets)}.values()
        self.measured += releases
        self.rows += [each.row for each in releases]

    def _measure(self, run: CodebookRun, recipe: Recipe | None, varied: Recipe | None) -> ReleaseQuality:
        """Release the photos with a recipe at one strength, or passive if it is None, and search for their copies."""
        released = run.release(varied or PASSIVE)
        copies = run.copies(released.files, PAPER, released.name)
        lpips = measure_lpips(run, released, self._distance) if self._distance else []
        found = run.search(copies, NEAREST, self.settings.probes, released.name)
        correct = run.copy_search(released, PAPER, found, self.settings.probes).correct
        # The index stores the code of the original.
        true_ids, unedited = run.true_ids(released.files), np.array(copies[:, _UNEDITED])
        distances = run.codebook.quantizer.distances(unedited, run.descriptors[true_ids].numpy()).tolist()

        def spread_of(values: Sequence[float]) -> Spread | None:
            return spread(values) if values else None

        columns = released.columns()
        row = {
            **run.columns(recipe.name if recipe else PASSIVE),
            "release": released.name,  # the folder of the files
            "budget": varied and str(varied.budget),
            "own_budget": varied == recipe,
            "photos": columns["photos"],
            "activated": columns["activated"],
            **{
                name: spread_of([getattr(each, name) for each in released.qualities])
                for name in ("psnr", "ssim", "linf")
            },
            "lpips": spread_of(lpips),
            "seconds_per_photo": columns["seconds_per_photo"],
            "recall": float(correct.mean()),
            "interval": recall_intervals(correct).mean,
            "average_precision": average_precision(found.ids, found.distances, true_ids.repeat(len(PAPER))),
            "distance": spread(distances),
        }
        photos = list(photo_qualities(run, released, lpips, distances, correct))
        return ReleaseQuality(run, row, released, photos)

    def facts(self) -> Mapping[str, object]:
        """Recipes, strengths, budgets and probes."""
        return {
            "recipes": self.settings.recipes,
            "strengths": [str(budget) for budget in self.settings.strengths()],
            "budgets": [str(budget) for budget in self.settings.compared_budgets()],
            "probes": self.settings.probes,
            "spread": "standard deviation over the photos",
        }

    @property
    def _qualities(self) -> Columns:
        """The columns of quality."""
        lpips = {"LPIPS": number("lpips", 4)} if self.settings.lpips else {}
        return {"PSNR, dB": number("psnr", 1), "SSIM": number("ssim", 3), "L∞, of 255": number("linf", 1), **lpips}

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """The trade-off."""
        columns: Columns = {
            "codebook": "codebook",
            "release": "release",
            **self._qualities,
            "activated": _activated,
            "recall": number("recall", 3),
            "µAP": number("average_precision", 3),
            "distance": _mean_distance,
        }
        return list(columns), [cells(row, columns) for row in self.rows]

    def tables(self) -> list[Table]:
        """Quality at the recipes' own budgets, the trade-off, and the comparison of budgets."""
        return [self._quality_table(), self._trade_off(), self._budgets_table()]

    def _quality_table(self) -> Table:
        """Each recipe at its own budget, and the published figures."""
        loop = next(row for row in published()["table"] if row["recipe"] == "paper" and "activation_ms" in row)
        known = published()["quality"]
        theirs = {
            **_SSCD,
            "index": loop["index"],
            "budget": "JND with alpha 3",
            "activated": "10,000",
            "PSNR, dB": f"{known['psnr']:.1f}",
            "SSIM": f"{known['ssim']:.2f}",
            "L∞, of 255": f"{known['linf']:.1f}",
            "s per photo": f"{loop['activation_ms'] / 1000:.2f}",
        }
        return Table.of(
            "quality",
            "The activated files as written: mean and standard deviation. The row named SSCD is as published "
            "(Fernandez et al., 2023), with the same alpha for all photos; here each photo has the same PSNR.",
            {**_FIRST, "activated": _activated, **self._qualities, "s per photo": number("seconds_per_photo", 2)},
            [row for row in self.rows if row["own_budget"] and row["recipe"] != PASSIVE],
            published=[theirs],
        )

    def _trade_off(self) -> Table:
        """Quality and recall at every strength."""
        passive = {row["codebook"]: row["average_precision"] for row in self.rows if row["recipe"] == PASSIVE}

        def gain(row: Row) -> str:
            before = passive[row["codebook"]]
            return "" if row["recipe"] == PASSIVE or not before else f"×{row['average_precision'] / before:.2f}"

        ours = [each.row for each in self.strengths]
        theirs = [
            {**_SSCD, "PSNR, dB": f"{known['psnr']:.1f}", "µAP ÷ passive": f"×{known['gain']:.1f}"}
            for known in published()["average_precision_gain"]
        ]
        return Table.of(
            "trade-off",
            "By strength: recall at rank 1, mean of the fourteen edits; µAP over the queries of all edits, and "
            "divided by that of passive; distance of the unedited files to their codes. Rows named SSCD are as "
            "published, with the random edit alone and with negative queries.",
            {
                "network": network,
                "recipe": "release",
                **self._qualities,
                "activated": _activated,
                "recall, 95 % interval": _recall,
                "µAP": number("average_precision", 3),
                "µAP ÷ passive": gain,
                "distance": _mean_distance,
            },
            ours,
            published=theirs,
            groups=group_starts([(row["codebook"], row["recipe"]) for row in ours]),
        )

    def _budgets_table(self) -> Table:
        """Each recipe with each budget, and the paper's two photos."""
        theirs = [
            {
                **_SSCD,
                "index": PAPER_INDEX,
                "budget": each["budget"],
                "activated": "1",
                "PSNR, dB": f"{each['psnr']:.1f}",
                "SSIM": f"{each['ssim']:.2f}",
                "L∞, of 255": f"{each['linf']:g}",
            }
            for each in published()["budgets"]
        ]
        return Table.of(
            "budgets",
            "Comparison of budgets: files as written, and recall at rank 1, mean of the fourteen edits. With "
            "the L∞ budget nearly all pixels change by the full bound; 8-bit files hold whole steps, so that it cannot "
            "meet every PSNR. Rows named SSCD are as published, of one photo.",
            {**_FIRST, "activated": _activated, **self._qualities, "recall, 95 % interval": _recall},
            [each.row for each in self.budgets],
            published=theirs,
        )

    def figures(self) -> list[Figure]:
        """The trade-off of each codebook, and one photo with each budget, for the first codebook and recipe."""
        figures = []
        for position, run in enumerate(self.runs, 1):
            what = f"{run.codebook.name}, {describe_probes(self.settings.probes, run.codebook.has_cells)}"
            rows = [each.row for each in self.strengths if each.run is run]
            figures.append(trade_off_figure(numbered_name("trade-off", position), what, rows))
        first = [each for each in self.budgets if each.run is self.runs[0]]
        budgets = budgets_figure(first[: len(self.settings.compared_budgets())])
        return [*figures, *([budgets] if budgets else [])]

    def pictures(self) -> list[PictureRow]:
        """The first photos, released with each recipe at its own budget, for the first codebook."""
        own = [each for each in self.strengths if each.run is self.runs[0] and each.row["own_budget"]]
        activated = [each for each in own if each.row["recipe"] != PASSIVE]
        return list(picture_rows(self.runs[0], activated, self.settings.pictures))

    def csv(self) -> CsvTable:
        """A row for each photo and release."""
        measured = ("psnr", "ssim", "linf", "lpips", "distance", "copies_found")
        lines = (
            [each.row["codebook"], each.row["release"], *photo.cells()]
            for each in self.measured
            for photo in each.photos
        )
        headings = ["codebook", "recipe", "photo", "state", *measured]
        return CsvTable(name="photos", content="every photo and release", headings=headings, rows=lines)


def at_strength(recipe: Recipe, budget: Budget) -> Recipe:
    """The recipe with another budget, renamed to a valid folder name; unchanged if the budget is its own."""
    if budget == recipe.budget:
        return recipe
    kind = "" if budget.name == recipe.budget.name else f"-{budget.name}"
    strength = f"{budget.psnr:g}dB" if budget.psnr is not None else f"alpha-{budget.alpha:g}"
    return replace(recipe, name=f"{recipe.name}{kind}-{strength}", budget=budget)


def _strength(release: ReleaseQuality) -> float:
    psnr = release.row["psnr"]
    return -np.inf if psnr is None else -float(psnr.mean)


def _activated(row: Row) -> str:
    return "" if row["recipe"] == PASSIVE else f"{row['activated']:,} of {row['photos']:,}"


def _recall(row: Row) -> str:
    return with_interval(row["recall"], row["interval"])


def _mean_distance(row: Row) -> str:
    return f"{row['distance'].mean:.3f}"


_FIRST: Columns = {"network": network, "index": "spec", "recipe": "recipe", "budget": "budget"}
_SSCD = {"network": "SSCD", "recipe": "paper"}  # published figures

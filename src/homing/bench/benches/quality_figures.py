"""The figures and pictures of the quality bench: the trade-off, one photo with each budget, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from homing.bench.benches.quality import QualityResult, QualityRow, ReleaseQuality
from homing.bench.protocol.config import PASSIVE
from homing.bench.protocol.report import describe_probes, numbered_name
from homing.bench.results import Figure, PictureRow, colors
from homing.imaging import MAGNIFY, difference, jnd_picture, to_image
from homing.photo import Photo

if TYPE_CHECKING:
    import matplotlib.figure
    from PIL import Image

# The panels of the trade-off, by title.
_PANELS: dict[str, Callable[[QualityRow], float]] = {
    "recall at rank 1": lambda row: row.recall,
    "µAP": lambda row: row.average_precision,
    "distance to the code": lambda row: row.distance.mean,
}
_SIDE = 840  # pixels: pictures are reduced to this side, to limit memory

_WIDTH = 11.0  # inches


class _Column(NamedTuple):
    """A photo in one state, the difference below it, and the texts above and below."""

    title: str
    photo: Image.Image
    change: Image.Image
    caption: str


def figures(result: QualityResult) -> Iterator[Figure]:
    """The trade-off of each codebook, and one photo with each budget."""
    for number, codebook_result in enumerate(result.codebook_results, start=1):
        codebook = codebook_result.run.codebook
        what = f"{codebook.name}, {describe_probes(result.bench.probes, codebook.has_cells)}"
        yield _trade_off(numbered_name("trade-off", number), what, [each.row for each in codebook_result.strengths])
    yield from _budgets(result)


def _trade_off(name: str, what: str, rows: Sequence[QualityRow]) -> Figure:
    """The paper's figure: recall, µAP and distance to the code against the PSNR."""
    recipes = list(dict.fromkeys(row.recipe for row in rows))
    color = colors(recipes)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(1, len(_PANELS))
        for axes, (title, height) in zip(panels, _PANELS.items(), strict=True):
            for recipe in recipes:
                chosen = [row for row in rows if row.recipe == recipe]
                if recipe == PASSIVE:
                    axes.axhline(height(chosen[0]), color=color[recipe], label=recipe)
                    continue
                points = [(row.psnr.mean, row) for row in chosen if row.psnr is not None]
                at = [psnr for psnr, _ in points]
                if title.startswith("recall"):
                    low, high = ([row.interval[side] for _, row in points] for side in (0, 1))
                    axes.fill_between(at, low, high, color=color[recipe], alpha=0.18, linewidth=0)
                axes.plot(at, [height(row) for _, row in points], "o-", color=color[recipe], label=recipe)
            axes.set_title(title)
            axes.set_ylim(0, None if title.startswith("distance") else 1.03)
            axes.locator_params(axis="x", integer=True, nbins=6)
            axes.invert_xaxis()
            axes.set_xlabel("PSNR, dB")
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(recipes))

    return Figure(
        name=name,
        caption=f"Recall and distance by PSNR, {what}; stronger activation is to the right: recall, mean of the "
        "fourteen edits, with its 95 % interval; µAP over the queries of all edits; and the mean distance of the "
        "released files to their codes.",
        draw=draw,
        size=(9.0, 3.4),
    )


def pictures(result: QualityResult) -> Iterator[PictureRow]:
    """The first photos, released with each recipe at its own budget, for the first codebook."""
    codebook_result = result.codebook_results[0]
    own_budget_releases = [
        each for each in codebook_result.strengths if each.row.own_budget and each.row.recipe != PASSIVE
    ]
    for number, original in enumerate(codebook_result.run.originals[: result.bench.pictures]):
        before = Photo.load(original.file).pixels()
        captions, after, changed = [], {}, {}
        for each in own_budget_releases:
            line = each.photos[number]
            captions.append(f"{each.row.recipe} {line.quality or line.state}")
            released = next((file for file in each.release_result.files if file.source == original.source), None)
            if released is not None:
                pixels = Photo.load(released.file).pixels()
                after[f"after, {each.row.recipe}"] = _small(to_image(pixels))
                changed[f"difference ×{MAGNIFY}, {each.row.recipe}"] = _small(difference(before, pixels))
        first, last = {"before": _small(to_image(before))}, {"pixel bound (JND map)": _small(jnd_picture(before))}
        yield PictureRow(
            caption=f"{original.source}: {'; '.join(captions)}", pictures={**first, **after, **changed, **last}
        )


def _budgets(result: QualityResult) -> Iterator[Figure]:
    """The paper's other figure: one photo with each budget, for the first codebook and recipe."""
    codebook_result = result.codebook_results[0]
    compared = codebook_result.budgets[: len(result.bench.compared_budgets())]
    lines = zip(*(each.photos for each in compared), strict=True)
    number = next((position for position, chosen in enumerate(lines) if all(line.quality for line in chosen)), None)
    if len(compared) < 2 or number is None:
        return
    original = codebook_result.run.originals[number]
    before = Photo.load(original.file).pixels()
    columns = [_Column("original", to_image(before), jnd_picture(before), "pixel bound (JND map)")]
    for each in compared:
        after = Photo.load(
            next(file.file for file in each.release_result.files if file.source == original.source)
        ).pixels()
        columns.append(
            _Column(str(each.row.budget), to_image(after), difference(before, after), _caption(each, number))
        )
    yield Figure(
        name="budgets",
        caption=f"{original.source}, released with {compared[0].row.recipe} and each budget, and the difference "
        f"×{MAGNIFY}. Below: quality of this file, and recall at rank 1 of all photos, mean of the fourteen "
        "edits.",
        draw=partial(_draw_columns, columns),
        size=(_WIDTH, 2 * _WIDTH / len(columns) * before.shape[1] / before.shape[2] + 1.0),
    )


def _caption(release: ReleaseQuality, number: int) -> str:
    line, row = release.photos[number], release.row
    assert line.quality is not None
    near = f"PSNR {line.quality.psnr:.1f} dB, SSIM {line.quality.ssim:.3f}"
    far = f"L∞ {line.quality.linf:.0f}" + ("" if line.lpips is None else f", LPIPS {line.lpips:.4f}")
    return f"{near}\n{far}\nrecall {row.recall:.3f}"


def _draw_columns(columns: Sequence[_Column], canvas: matplotlib.figure.Figure) -> None:
    panels = canvas.subplots(2, len(columns))
    for (above, below), column in zip(panels.T, columns, strict=True):
        above.imshow(_small(column.photo))
        below.imshow(_small(column.change))
        above.set_title(column.title, loc="center")
        below.set_xlabel(column.caption)
        for axes in (above, below):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(True)  # a frame, for photos that are white at the border


def _small(image: Image.Image) -> Image.Image:
    image.thumbnail((_SIDE, _SIDE))
    return image

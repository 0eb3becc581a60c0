"""The photos of the quality bench: the quality of each, pictures before and after, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

from homing.bench.base import PASSIVE
from homing.bench.data import CachedArray, cache_key, file_state
from homing.bench.figures import Figure, colors
from homing.bench.report import PictureRow
from homing.bench.runs import CodebookRun, ReleaseResult
from homing.bench.tables import Row, fixed
from homing.imaging import MAGNIFY, difference, jnd_picture, to_image
from homing.perception import Quality
from homing.perception.quality import Distance
from homing.photo import Photo

if TYPE_CHECKING:
    import matplotlib.figure
    from PIL import Image

# The panels of the trade-off, by title.
_PANELS: dict[str, Callable[[Row], float]] = {
    "recall at rank 1": lambda row: float(row["recall"]),
    "µAP": lambda row: float(row["average_precision"]),
    "distance to the code": lambda row: float(row["distance"].mean),
}
_SIDE = 840  # pixels: pictures are reduced to this side, to limit memory
_WIDTH = 11.0  # inches


class PhotoQuality(NamedTuple):
    """The result for one photo: quality, distance of the file to its code, number of copies found."""

    photo: str
    state: str
    quality: Quality | None = None
    lpips: float | None = None
    distance: float | None = None
    copies_found: int | None = None

    def cells(self) -> list[object]:
        """The cells of a CSV row."""
        of, found = self.quality, "" if self.copies_found is None else self.copies_found
        quality = [f"{of.psnr:.3f}", f"{of.ssim:.5f}", f"{of.linf:g}"] if of else [""] * 3
        return [self.photo, self.state, *quality, fixed(self.lpips, 5), fixed(self.distance, 5), found]


@dataclass(frozen=True)
class ReleaseQuality:
    """A row, its files, and the result for each photo."""

    run: CodebookRun
    row: Row
    released: ReleaseResult
    photos: list[PhotoQuality]

    def pixels(self, source: str) -> Tensor | None:
        """The pixels of the released file of a photo, if it was released."""
        files = (each.file for each in self.released.files if each.source == source)
        file = next(files, None)
        return None if file is None else Photo.load(file).pixels()


def measure_lpips(run: CodebookRun, released: ReleaseResult, distance: Distance) -> list[float]:
    """LPIPS between each activated file of a release and its original, in the order of the files; cached."""
    originals = {original.source: original.file for original in run.originals}
    pairs = [(originals[file.source], file.file) for file in released.activated]
    if not pairs:
        return []
    key = cache_key("lpips", [[*file_state(before), *file_state(after)] for before, after in pairs])
    cache = CachedArray(run.settings.out / f"lpips-{key}.npy", (len(pairs),), np.float32)
    with run.progress(f"{run.codebook.name}: measuring LPIPS, {released.name}", len(pairs)) as advance:
        for position, (before, after) in enumerate(pairs):
            if position >= cache.count:
                measured = distance(Photo.load(before).pixels(), Photo.load(after).pixels())
                cache.append(np.array([measured], np.float32))
            advance()
    return [float(each) for each in cache.rows]


def photo_qualities(
    run: CodebookRun,
    released: ReleaseResult,
    lpips: Sequence[float],
    distances: Sequence[float],
    correct: np.ndarray,
) -> Iterator[PhotoQuality]:
    """The result for each photo of a release."""
    activated = {file.source: number for number, file in enumerate(released.activated)}
    positions = {file.source: position for position, file in enumerate(released.files)}
    for source in (original.source for original in run.originals):
        if source not in positions:
            yield PhotoQuality(source, "failed")
            continue
        number, position = activated.get(source), positions[source]
        state = PASSIVE if released.name == PASSIVE else "unchanged" if number is None else "activated"
        quality = None if number is None else released.qualities[number]
        lpips_value = lpips[number] if lpips and number is not None else None
        yield PhotoQuality(source, state, quality, lpips_value, distances[position], int(correct[position].sum()))


class _Column(NamedTuple):
    """A photo in one state, the difference below it, and the texts above and below."""

    title: str
    photo: Image.Image
    change: Image.Image
    caption: str


def trade_off_figure(name: str, what: str, rows: Sequence[Row]) -> Figure:
    """The paper's figure: recall, µAP and distance to the code against the PSNR."""
    recipes = list(dict.fromkeys(row["recipe"] for row in rows))
    color = colors(recipes)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(1, len(_PANELS))
        for axes, (title, height) in zip(panels, _PANELS.items(), strict=True):
            for recipe in recipes:
                chosen = [row for row in rows if row["recipe"] == recipe]
                if recipe == PASSIVE:
                    axes.axhline(height(chosen[0]), color=color[recipe], label=recipe)
                    continue
                points = [(row["psnr"].mean, row) for row in chosen if row["psnr"] is not None]
                at = [psnr for psnr, _ in points]
                if title.startswith("recall"):
                    low, high = ([row["interval"][side] for _, row in points] for side in (0, 1))
                    axes.fill_between(at, low, high, color=color[recipe], alpha=0.18, linewidth=0)
                axes.plot(at, [height(row) for _, row in points], "o-", color=color[recipe], label=recipe)
            axes.set(title=title, xlabel="PSNR, dB", ylim=(0, None if title.startswith("distance") else 1.03))
            axes.locator_params(axis="x", integer=True, nbins=6)
            axes.invert_xaxis()
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(recipes))

    return Figure(
        name=name,
        caption=f"Recall and distance by PSNR, {what}; stronger activation is to the right: recall, mean of the "
        "fourteen edits, with its 95 % interval; µAP over the queries of all edits; and the mean distance of the "
        "released files to their codes.",
        draw=draw,
        size=(9.0, 3.4),
    )


def picture_rows(run: CodebookRun, releases: Sequence[ReleaseQuality], count: int) -> Iterator[PictureRow]:
    """The first photos before and after each of these releases, with the differences and the JND map."""
    for number, original in enumerate(run.originals[:count]):
        before = Photo.load(original.file).pixels()
        captions, after, changed = [], {}, {}
        for each in releases:
            photo, recipe, pixels = each.photos[number], each.row["recipe"], each.pixels(original.source)
            captions.append(f"{recipe} {photo.quality or photo.state}")
            if pixels is not None:
                after[f"after, {recipe}"] = _small(to_image(pixels))
                changed[f"difference ×{MAGNIFY}, {recipe}"] = _small(difference(before, pixels))
        first, last = {"before": _small(to_image(before))}, {"pixel bound (JND map)": _small(jnd_picture(before))}
        caption = f"{original.source}: {'; '.join(captions)}"
        yield PictureRow(caption=caption, pictures={**first, **after, **changed, **last})


def budgets_figure(compared: Sequence[ReleaseQuality]) -> Figure | None:
    """The paper's other figure: the first photo that was activated with each of several budgets, if there is one."""
    photos = zip(*(each.photos for each in compared), strict=True)
    number = next((position for position, chosen in enumerate(photos) if all(photo.quality for photo in chosen)), None)
    if len(compared) < 2 or number is None:
        return None
    original = compared[0].run.originals[number]
    before = Photo.load(original.file).pixels()
    columns = [_Column("original", to_image(before), jnd_picture(before), "pixel bound (JND map)")]
    for each in compared:
        after = each.pixels(original.source)
        assert after is not None
        change, caption = difference(before, after), _caption(each, number)
        columns.append(_Column(str(each.row["budget"]), to_image(after), change, caption))
    return Figure(
        name="budgets",
        caption=f"{original.source}, released with {compared[0].row['recipe']} and each budget, and the difference "
        f"×{MAGNIFY}. Below: quality of this file, and recall at rank 1 of all photos, mean of the fourteen "
        "edits.",
        draw=partial(_draw_columns, columns),
        size=(_WIDTH, 2 * _WIDTH / len(columns) * before.shape[1] / before.shape[2] + 1.0),
    )


def _caption(release: ReleaseQuality, number: int) -> str:
    photo, row = release.photos[number], release.row
    assert photo.quality is not None
    near = f"PSNR {photo.quality.psnr:.1f} dB, SSIM {photo.quality.ssim:.3f}"
    far = f"L∞ {photo.quality.linf:.0f}" + ("" if photo.lpips is None else f", LPIPS {photo.lpips:.4f}")
    return f"{near}\n{far}\nrecall {row['recall']:.3f}"


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

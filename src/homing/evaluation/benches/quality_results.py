"""What the quality bench found, told: quality beside the paper's, the trade-off as a figure, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from homing.evaluation.benches.quality import QualityResult, Row
from homing.evaluation.pictures import MAGNIFY, difference, jnd_picture, to_image
from homing.evaluation.protocol.setting import PASSIVE
from homing.evaluation.protocol.told import numbered, numbers, searched, setting_line
from homing.evaluation.published import AVERAGE_PRECISION_GAIN, QUALITY, TABLE
from homing.evaluation.results import Figure, Lines, PictureRow, Results, Table, colours
from homing.photo import Photo

if TYPE_CHECKING:
    import matplotlib.figure
    from PIL import Image

# What the panels of the figure show of a row.
_PANELS: dict[str, Callable[[Row], float]] = {
    "recall at rank 1": lambda row: row.recall,
    "µAP": lambda row: row.average_precision,
    "distance to the code": lambda row: row.distance.mean,
}
_SIDE = 840  # pixels: what is kept of a picture, so that many photos of many megapixels fit into the memory


def results(result: QualityResult, command: str) -> Results:
    """All there is to say."""
    subjects = [subject for subject, _ in result.measured]
    return Results(
        title="What activation costs the eye",
        setting=f"The files as written, and copies of them searched for: {setting_line(subjects[0])}",
        command=command,
        numbers=numbers(
            subjects,
            rows=[asdict(row) for row in result.rows],
            settings={
                "recipes": list(result.bench.recipes),
                "strengths": [str(budget) for budget in result.bench.budgets()],
                "probes": result.bench.probes,
                "spread": "standard deviation over the photos",
                "intervals": "95 %, a bootstrap over photos (seed 0)",
            },
            seconds=result.seconds,
        ),
        tables=[_quality(result), _trade_off(result)],
        figures=list(_figures(result)),
        pictures=list(_pictures(result)),
        lines=Lines(
            name="photos",
            what="every photo and release",
            headings=["codebook", "recipe", "photo", "state", "psnr", "ssim", "linf", "distance", "copies_home"],
            rows=_lines(result),
        ),
    )


def shown(result: QualityResult) -> list[list[str]]:
    """The trade-off, for a terminal."""
    headings = ["codebook", "release", "PSNR, dB", "SSIM", "L∞", "activated", "recall", "µAP", "distance"]
    rows = [
        [
            row.codebook,
            row.release,
            *_eye(row),
            _activated(row),
            f"{row.recall:.3f}",
            f"{row.average_precision:.3f}",
            f"{row.distance.mean:.3f}",
        ]
        for row in result.rows
    ]
    return [headings, *rows]


def _eye(row: Row) -> list[str]:
    """What the eye may notice."""
    spreads = ((row.psnr, ".1f"), (row.ssim, ".3f"), (row.linf, ".1f"))
    return ["" if spread is None else format(spread, digits) for spread, digits in spreads]


def _activated(row: Row) -> str:
    return "" if row.recipe == PASSIVE else f"{row.activated:,} of {row.photos:,}"


def _quality(result: QualityResult) -> Table:
    """Each recipe at its own budget, and the paper's figures."""
    ours = [
        [
            Path(row.extractor).name,
            row.spec,
            row.recipe,
            str(row.budget),
            _activated(row),
            *_eye(row),
            f"{row.seconds_per_photo:.2f}",
        ]
        for row in result.rows
        if row.own and row.recipe != PASSIVE
    ]
    known = next(row for row in TABLE if row.recipe == "paper" and row.activation_ms)
    published = ["SSCD", known.index, known.recipe, "JND with alpha 3", "10,000"]
    published += [f"{QUALITY['psnr']:.1f}", f"{QUALITY['ssim']:.2f}", f"{QUALITY['linf']:.1f}"]
    assert known.activation_ms is not None
    return Table(
        name="quality",
        caption="The activated files as written: mean and standard deviation. The row named SSCD is as published "
        "(Fernandez et al., 2023): there one alpha holds for all photos, here each photo is brought to the same PSNR.",
        headings=["network", "index", "recipe", "budget", "activated", "PSNR, dB", "SSIM", "L∞, of 255", "s per photo"],
        rows=[*ours, [*published, f"{known.activation_ms / 1000:.2f}"]],
        groups=[len(ours)],
    )


def _trade_off(result: QualityResult) -> Table:
    """Every strength: what it costs and what it brings."""
    rows: list[list[str]] = []
    groups = []
    for _, some in result.measured:
        passive = some[0].row
        for recipe in dict.fromkeys(each.row.recipe for each in some):
            groups.append(len(rows))
            rows += [_strength(each.row, passive) for each in some if each.row.recipe == recipe]
    groups.append(len(rows))
    for psnr, gain in AVERAGE_PRECISION_GAIN.items():
        rows.append(["SSCD", "paper", f"{psnr:.1f}", *[""] * 5, f"×{gain:.1f}", ""])
    headings = ["network", "recipe", "PSNR, dB", "SSIM", "L∞", "activated"]
    headings += ["recall, 95 % interval", "µAP", "of passive", "distance"]
    return Table(
        name="trade-off",
        caption="From gentle to strong: recall at rank 1, mean of the fourteen edits; µAP over the queries of all of "
        "them, and how many times that of passive; distance of the files, unedited, to their codes. Rows named SSCD "
        "are as published, with the random edit alone and queries that have no reference.",
        headings=headings,
        rows=rows,
        groups=groups,
    )


def _strength(row: Row, passive: Row) -> list[str]:
    gain = row.average_precision / passive.average_precision if passive.average_precision else None
    return [
        Path(row.extractor).name,
        row.release,
        *_eye(row),
        _activated(row),
        f"{row.recall:.3f} ({row.interval.low:.3f}–{row.interval.high:.3f})",
        f"{row.average_precision:.3f}",
        "" if gain is None or row.recipe == PASSIVE else f"×{gain:.2f}",
        f"{row.distance.mean:.3f}",
    ]


def _figures(result: QualityResult) -> Iterator[Figure]:
    """One for each codebook."""
    for number, (subject, some) in enumerate(result.measured, start=1):
        what = f"{subject.codebook.name}, {searched(result.bench.probes)}"
        yield _figure(numbered("trade-off", number), what, [each.row for each in some])


def _figure(name: str, what: str, rows: Sequence[Row]) -> Figure:
    """The paper's figure: what is found, and the distance to the code, against the PSNR."""
    recipes = list(dict.fromkeys(row.recipe for row in rows))
    colour = colours(recipes)

    def draw(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(1, len(_PANELS))
        for axes, (title, height) in zip(panels, _PANELS.items(), strict=True):
            for recipe in recipes:
                some = [row for row in rows if row.recipe == recipe]
                if recipe == PASSIVE:
                    axes.axhline(height(some[0]), color=colour[recipe], label=recipe)
                    continue
                drawn = [(row.psnr.mean, row) for row in some if row.psnr is not None]
                at = [psnr for psnr, _ in drawn]
                if title.startswith("recall"):
                    low, high = ([row.interval[side] for _, row in drawn] for side in (0, 1))
                    axes.fill_between(at, low, high, color=colour[recipe], alpha=0.18, linewidth=0)
                axes.plot(at, [height(row) for _, row in drawn], "o-", color=colour[recipe], label=recipe)
            axes.set_title(title)
            axes.set_ylim(0, None if title.startswith("distance") else 1.03)
            axes.locator_params(axis="x", integer=True, nbins=6)
            axes.invert_xaxis()
            axes.set_xlabel("PSNR, dB")
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(recipes))

    return Figure(
        name=name,
        caption=f"What a lower PSNR buys, {what}, from gentle on the left to strong on the right: recall, mean of the "
        "fourteen edits, with its 95 % interval; µAP over the queries of all of them; and the mean distance of the "
        "released files to their codes.",
        draw=draw,
        size=(9.0, 3.4),
    )


def _pictures(result: QualityResult) -> Iterator[PictureRow]:
    """The first photos, released with each recipe at its own budget, for the first codebook."""
    subject, some = result.measured[0]
    own = [each for each in some if each.row.own and each.row.recipe != PASSIVE]
    for number, original in enumerate(subject.originals[: result.bench.pictures]):
        before = Photo.load(original.file).view()
        captions, after, changed = [], {}, {}
        for each in own:
            line = each.lines[number]
            captions.append(f"{each.row.recipe} {line.quality or line.state}")
            released = next((file for file in each.made.files if file.source == original.source), None)
            if released is not None:
                view = Photo.load(released.file).view()
                after[f"after, {each.row.recipe}"] = _small(to_image(view))
                changed[f"difference ×{MAGNIFY}, {each.row.recipe}"] = _small(difference(before, view))
        first, last = {"before": _small(to_image(before))}, {"room (JND map)": _small(jnd_picture(before))}
        yield PictureRow(
            caption=f"{original.source}: {'; '.join(captions)}", pictures={**first, **after, **changed, **last}
        )


def _small(image: Image.Image) -> Image.Image:
    image.thumbnail((_SIDE, _SIDE))
    return image


def _lines(result: QualityResult) -> Iterator[list[object]]:
    """A line for each photo and release; nothing stands where there is no number."""
    for subject, some in result.measured:
        for measured in some:
            for line in measured.lines:
                quality = [""] * 3
                if line.quality is not None:
                    quality = [f"{line.quality.psnr:.3f}", f"{line.quality.ssim:.5f}", f"{line.quality.linf:g}"]
                distance = "" if line.distance is None else f"{line.distance:.5f}"
                home = "" if line.home is None else line.home
                about = [subject.codebook.name, measured.row.release, line.photo, line.state]
                yield [*about, *quality, distance, home]

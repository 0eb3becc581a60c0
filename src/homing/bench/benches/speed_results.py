"""The report of the speed bench: two tables, a figure of the stages, and the JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING

from homing.bench.benches.speed import PLAIN_RECIPE, SpeedResult
from homing.bench.benches.speed_files import STAGES, FileRow
from homing.bench.benches.speed_loop import PLAIN, LoopRow
from homing.bench.results import PALETTE, Figure, Results, Table

if TYPE_CHECKING:
    import matplotlib.figure

_MEMORY = "peak above that of network and photos, on the GPU or of a process that runs this loop alone"


def results(result: SpeedResult, command: str) -> Results:
    """The report."""
    return Results(
        title="Speed: the plain loop and homing",
        summary=_summary(result),
        command=command,
        numbers={
            "loop": _loop(result.loop),
            "files": _files(result),
            "recall": result.files.recall,
            "memory": _memory(result.loop),
            "settings": {
                "photos": result.photos,
                "megapixels": round(result.megapixels, 3),
                "codebook": result.codebook.name,
                "extractor": result.codebook.extractor,
                "device": result.device,
                "recipes": [str(config.recipe) for config in result.bench.loop_configs],
                "batches": list(dict.fromkeys(row.batch for row in result.loop)),
                "rounds": result.bench.rounds,
                "distractors": result.files.distractors,
            },
            "seconds": round(result.seconds, 1),
            "failures": result.failures,
        },
        tables=[_loop_table(result), _files_table(result)],
        figures=[_figure(result.files.rows)],
    )


def terminal_table(result: SpeedResult) -> list[list[str]]:
    """The table for a terminal: each loop, at its fastest batch size, and file to file."""
    loops = {row.name: _best(result.loop, row.name) for row in result.files.rows}
    headings = ["loop", "batch", "loop,\nms per photo", "plain ÷ it", "memory,\nMB", "file to file,\nms per photo"]
    lines = [[*headings, "plain ÷ it", "photos/s", "recall,\none probe"]]
    first = result.files.rows[0]
    for row in result.files.rows:
        loop = loops[row.name]
        lines.append(
            [
                _name(row.name),
                str(loop.batch),
                f"{loop.ms:.2f}",
                f"{loops[PLAIN.name].ms / loop.ms:.2f}",
                _whole(loop.memory_mb),
                f"{row.ms:.1f}",
                f"{first.ms / row.ms:.2f}",
                f"{row.photos_per_second:.1f}",
                _share(result.files.recall[row.name]),
            ]
        )
    return lines


def _loop(rows: Sequence[LoopRow]) -> dict[str, object]:
    """The plain loop and homing with the same recipe, each at its fastest batch size."""
    ours, theirs = _best(rows, PLAIN_RECIPE), _best(rows, PLAIN.name)
    return {
        "plain_ms": theirs.ms,
        "homing_ms": ours.ms,
        "ratio": theirs.ms / ours.ms,
        "recipe": PLAIN_RECIPE,
        "plain_batch": theirs.batch,
        "homing_batch": ours.batch,
        "rows": [asdict(row) for row in rows],
    }


def _files(result: SpeedResult) -> dict[str, object]:
    """The plain loop, and the fastest recipe with at least the same recall; None if recall was not measured."""
    plain, *others = result.files.rows
    needed = result.files.recall[plain.name]
    qualified = [row for row in others if needed is not None and (result.files.recall[row.name] or 0) >= needed]
    fastest = min(qualified, key=lambda row: row.ms, default=None)
    return {
        "plain_ms": plain.ms,
        "homing_ms": fastest.ms if fastest else None,
        "ratio": plain.ms / fastest.ms if fastest else None,
        "recipe": fastest.name if fastest else None,
        "rows": [asdict(row) for row in result.files.rows],
    }


def _memory(rows: Sequence[LoopRow]) -> dict[str, object]:
    ours, theirs = _best(rows, PLAIN_RECIPE), _best(rows, PLAIN.name)
    return {"plain_mb": theirs.memory_mb, "homing_mb": ours.memory_mb, "how": _MEMORY}


def _best(rows: Sequence[LoopRow], name: str) -> LoopRow:
    return min((row for row in rows if row.name == name), key=lambda row: row.ms)


def _summary(result: SpeedResult) -> str:
    among = (
        f"recall with one probe among {result.files.distractors:,} distractors, mean of 14 edits"
        if result.files.distractors
        else f"no recall: codebook '{result.codebook.name}' has no bundled distractors"
    )
    return (
        f"{result.photos:,} photos of {result.megapixels:.2f} megapixels, {result.codebook.extractor}, "
        f"{result.device}; medians of {result.bench.rounds} rounds after a first one that is not counted; {among}."
    )


def _loop_table(result: SpeedResult) -> Table:
    plain = {row.batch: row.ms for row in result.loop if row.name == PLAIN.name}
    return Table(
        name="loop",
        caption="The loop alone, with photos and pixel bounds on the device. homing optimizes a change of the "
        f"network's input size; it is scaled to the photo afterwards, which only file to file includes. "
        f"Memory: {_MEMORY}.",
        headings=["loop", "batch", "ms per photo", "plain ÷ it", "memory, MB"],
        rows=[
            [
                _name(row.name),
                str(row.batch),
                f"{row.ms:.2f}",
                f"{plain[row.batch] / row.ms:.2f}",
                _whole(row.memory_mb),
            ]
            for row in result.loop
        ],
        groups=[at for at, (one, other) in enumerate(pairwise(result.loop), 1) if one.batch != other.batch],
    )


def _files_table(result: SpeedResult) -> Table:
    plain = result.files.rows[0]
    passive = _share(result.files.recall["passive"])
    return Table(
        name="files",
        caption="File to file: read, decode, loop, write, release check, catalog; and recall of edited copies.",
        headings=["loop", "ms per photo", "photos/s", "plain ÷ it", "recall, one probe"],
        rows=[
            ["passive", "–", "–", "–", passive],
            *(
                [
                    _name(row.name),
                    f"{row.ms:.1f}",
                    f"{row.photos_per_second:.1f}",
                    f"{plain.ms / row.ms:.2f}",
                    _share(result.files.recall[row.name]),
                ]
                for row in result.files.rows
            ),
        ],
    )


def _figure(rows: Sequence[FileRow]) -> Figure:
    def draw(canvas: matplotlib.figure.Figure) -> None:
        axes = canvas.subplots()
        bar_positions = range(len(rows))
        begins = [0.0] * len(rows)
        for stage, color in zip(STAGES, PALETTE, strict=True):
            widths = [row.stages[stage] for row in rows]
            axes.barh(bar_positions, widths, 0.6, left=begins, color=color, label=stage)
            begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
        ends = [position + 0.4 for position in bar_positions]
        axes.vlines([row.ms for row in rows], [end - 0.8 for end in ends], ends, "black", label="elapsed time")
        axes.set_yticks(bar_positions, [_name(row.name) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("ms per photo")
        axes.grid(visible=False, axis="y")
        axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1))

    return Figure(
        name="stages",
        caption="Time by stage, file to file, summed over all threads. The loop excludes the pixel bound; GPU work "
        "counts for the stage that waits for it.",
        draw=draw,
        size=(8.0, 1.8 + 0.5 * len(rows)),
    )


def _name(name: str) -> str:
    return "plain loop" if name == PLAIN.name else f"homing, recipe {name}"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"

"""Tables, the figure and the rates of src/homing/rates.toml, from the results of benchmarks/scale.py.

python benchmarks/scale_results.py scale/scale.json           # print tables and rates
python benchmarks/scale_results.py scale/scale.json --fill    # write them into docs and rates, with the figure
python benchmarks/scale_results.py                            # update estimates and the figure
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homing import estimate
from homing.bench.figures import PALETTE, Figure, draw as draw_figure
from homing.bench.tables import markdown
from homing.estimate import latency, rates_under

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

ROOT = Path(__file__).parents[1]
# The last line of rates.toml that is written by hand.
FILLED = "ids of the ten nearest; choosing one of many cells, by comparing with all centers or along a graph."
SIZES = [10**power for power in range(4, 10)]
WAYS = {"one": "one probe", "default": "default"}


def tables(document: dict[str, Any]) -> str:
    """Four tables in Markdown: growing, searching, choosing a cell, recording."""
    growing = [
        [
            row["engine"],
            f"{row['references']:,}",
            f"{row['references'] / row['encode_s']:,.0f}",
            f"{row['references'] / row['add_s']:,.0f}",
            f"{row['save_s']:.2f}",
            _mb(row["disk"]),
            _mb(row["memory"]),
            f"{row['open_s']:.2f}",
        ]
        for row in document["rows"]
    ]
    searching = [
        [row["engine"], f"{row['references']:,}", words, *(_formatted(row[way])[each] for each in _SEARCHED)]
        for row in document["rows"]
        for way, words in WAYS.items()
    ]
    choosing = [
        [f"{row['cells']:,}", row["way"], f"{row['build_s']:.1f}", f"{row['p50']:.3f}", f"{row['same']:.3f}"]
        for row in document["cells"]
    ]
    recording = [
        [f"{row['kind']}, {row['engine']}", f"{row['bytes']:,.0f}", f"{row['per_second']:,.0f}"]
        for row in document["catalog"]
    ]
    heads = (
        ("engine", "references", "encoded /s", "codes added /s", "saved, s", "disk, MB", "memory, MB", "opened, s"),
        ("engine", "references", "search", "probes", "codes scanned", "p50, ms", "p99, ms"),
        ("cells", "chosen by", "built in, s", "one cell, p50, ms", "the nearest, share"),
        ("photos, engine", "catalog, bytes a photo", "recorded a second, 16 at once"),
    )
    about = f"{document['hardware']}; {document['spec']}, {document['queries']:,} single queries; at most "
    about += f"{document['memory'] / 1e9:.1f} GB of memory\n\n"
    rows = (growing, searching, choosing, recording)
    return about + "\n".join(markdown(head, cells) for head, cells in zip(heads, rows, strict=True))


_SEARCHED = ("probes", "codes", "p50", "p99")


def _formatted(searched: dict[str, float]) -> dict[str, str]:
    """Format the figures of a search for tables and rates."""
    whole = {name: f"{searched[name]:,.0f}" for name in ("probes", "codes")}
    return whole | {name: f"{searched[name]:.3f}" for name in ("p50", "p99")}


def _mb(count: float) -> str:
    return f"{count / 1e6:,.1f}"


def toml(document: dict[str, Any]) -> str:
    """Format the rates for rates.toml."""
    lines: list[str] = []
    for engine in dict.fromkeys(row["engine"] for row in document["catalog"]):
        part = "" if engine == "faiss" else f".{engine}"
        kinds = {row["kind"]: row for row in document["catalog"] if row["engine"] == engine}
        recorded = [_line(kind, "a second", f"{row['per_second']:,.0f}") for kind, row in kinds.items()]
        sizes = [_line(kind, "bytes", f"{row['bytes']:,.0f}") for kind, row in kinds.items()]
        lines += [f"[record{part}]", *recorded, "", f"[catalog{part}]", *sizes, ""]
    for engine in dict.fromkeys(row["engine"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["engine"] == engine]
        lines += [f"[search.{engine}]", _line("references", "references", [f"{row['references']:,}" for row in rows])]
        lines += [_line(part, "MB", [_mb(row[part]) for row in rows]) for part in ("disk", "memory")]
        lines += [_line("save", "s", [f"{row['save_s']:.2f}" for row in rows])]
        for way in WAYS:
            units = {"probes": "cells", "codes": "codes", "p50": "ms", "p99": "ms"}
            lines += [
                _line(f"{way}_{each}", units[each], [_formatted(row[way])[each] for row in rows]) for each in units
            ]
        lines += [""]
    lines += ["[cells]"]
    ways = {row["way"]: [each for each in document["cells"] if each["way"] == row["way"]] for row in document["cells"]}
    flat, graph = ways.values()
    lines += [_line("counts", "cells", [f"{row['cells']:,}" for row in flat])]
    lines += [
        _line(name, "ms", [f"{row['p50']:.3f}" for row in rows]) for name, rows in (("flat", flat), ("graph", graph))
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, unit: str, figures: str | Sequence[str]) -> str:
    return f'{name} = {{ source = "scale", unit = "{unit}", figures = {json.dumps(figures)} }}'


def extrapolated_table() -> str:
    """Return a table in Markdown of estimates from 10^4 to 10^9 photos with the current rates."""
    heads = ("photos", "2 cores", "one H200", "one writer", "catalog, GB", "index in memory, GB")
    searches = {"4,096 cells, one probe": (4096, 1), "default": (4096, None), "65,536 cells": (65_536, 1)}
    rows = []
    for size in SIZES:
        request = estimate.EstimateRequest(photos=size)
        estimates = [estimate.estimate(request), estimate.estimate(estimate.EstimateRequest(photos=size, gpu="h200"))]
        catalog = sum(part.bytes for part in estimates[0].storage if part.name.startswith("catalog"))
        (index,) = (part.bytes for part in estimates[0].storage if part.name == "index")
        hours = [estimate.stages[0].hours for estimate in estimates] + [estimates[0].stages[1].hours]
        found = [latency(request, size, *way) for way in searches.values()]
        marks = ["" if each.basis == "measured" else "*" for each in found]
        numbers = [f"{each:,.3g}" if each < 1000 else f"{each:,.0f}" for each in (*hours, catalog / 1e9, index / 1e9)]
        times = [f"{each.p50_ms:.2f}{mark}" for each, mark in zip(found, marks, strict=True)]
        rows.append([f"{size:,}", *numbers, *times])
    return markdown([*heads, *(f"{name}, ms" for name in searches)], rows)


def draw() -> bytes:
    """Draw the figure as PNG: measured rates as points, estimates as lines."""
    from matplotlib.ticker import LogLocator, NullFormatter

    def onto(canvas: matplotlib.figure.Figure) -> None:
        panels = canvas.subplots(1, 3)
        _search_panel(panels[0])
        _storage_panel(panels[1])
        _work_panel(panels[2])
        for panel in panels:
            panel.set(xscale="log", yscale="log", xlabel="photos" if panel is panels[2] else "references")
            panel.yaxis.set_major_formatter("{x:,g}")
        panels[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # the axis spans little more than a power of ten
        panels[0].yaxis.set_minor_formatter(NullFormatter())

    figure = Figure(name="scale", caption="", draw=onto, size=(12, 4.2))
    return draw_figure(figure).png


def _search_panel(axes: matplotlib.axes.Axes) -> None:
    rates = rates_under("search.faiss")
    request = estimate.EstimateRequest(photos=SIZES[-1])
    for color, way in zip(PALETTE, WAYS, strict=False):
        axes.plot(rates["references"].numbers, rates[f"{way}_p50"].numbers, "o", color=color, markersize=5)
        probes = 1 if way == "one" else None
        times = [latency(request, size, 4096, probes).p50_ms for size in SIZES]
        axes.plot(SIZES, times, "--", color=color, label=f"4,096 cells, {WAYS[way]}")
    for color, cells in zip(PALETTE[2:], (65_536, 262_144), strict=False):
        times = [latency(request, size, cells, 1).p50_ms for size in SIZES]
        axes.plot(SIZES, times, ":", color=color, label=f"{cells:,} cells, one probe")
    axes.set(title="one search, median", ylabel="milliseconds")
    axes.legend(fontsize=8)


def _storage_panel(axes: matplotlib.axes.Axes) -> None:
    rates = rates_under("search.faiss")
    estimates = [estimate.estimate(estimate.EstimateRequest(photos=size)) for size in SIZES]
    named = {
        "catalog, activated photos": lambda part: part.name.startswith("catalog"),
        "index in memory": lambda part: part.name == "index",
        "its snapshot on disk": lambda part: part.name.startswith("snapshot"),
    }
    for color, (name, counts) in zip(PALETTE, named.items(), strict=False):
        axes.plot(
            SIZES,
            [sum(part.bytes for part in estimate.storage if counts(part)) / 1e9 for estimate in estimates],
            "--",
            color=color,
            label=name,
        )
        if part := {"index in memory": "memory", "its snapshot on disk": "disk"}.get(name):
            gigabytes = [number / 1e3 for number in rates[part].numbers]
            axes.plot(rates["references"].numbers, gigabytes, "o", color=color, markersize=5)
    axes.set(title="storage", ylabel="gigabytes")
    axes.legend(fontsize=8)


def _work_panel(axes: matplotlib.axes.Axes) -> None:
    for color, (gpu, words) in zip(PALETTE, {"none": "2 cores", "h200": "one H200"}.items(), strict=False):
        for recipe, style in (("homing-fast", ":"), ("homing", "--")):
            estimates = [
                estimate.estimate(estimate.EstimateRequest(photos=size, gpu=gpu, recipe=recipe)) for size in SIZES
            ]
            hours = [estimate.stages[0].hours for estimate in estimates]
            axes.plot(SIZES, hours, style, color=color, label=f"{recipe}, {words}")
    writer = [estimate.estimate(estimate.EstimateRequest(photos=size)).stages[1].hours for size in SIZES]
    axes.plot(SIZES, writer, "-.", color=PALETTE[-1], label="the one writer")
    axes.set(title="activating photos of 1 megapixel", ylabel="hours on one machine")
    axes.legend(fontsize=8)


def _fill(document: dict[str, Any]) -> None:
    rates = ROOT / "src/homing/rates.toml"
    before, begin, _ = rates.read_text().partition(FILLED)
    rates.write_text(f"{before}{begin}\n\n{toml(document)}")
    _put("measured", tables(document))
    _fill_extrapolated()  # reads the new rates


def _fill_extrapolated() -> None:
    (ROOT / "docs/images/scale.png").write_bytes(draw())
    _put("extrapolated", extrapolated_table())


def _put(name: str, table: str) -> None:
    page = ROOT / "docs/reference/scale.md"
    before, begin, rest = page.read_text().partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition("<!-- until here -->\n")
    page.write_text(f"{before}{begin}\n{table}\n{end}{after}")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        _fill_extrapolated()
    elif "--fill" in sys.argv[2:]:
        _fill(json.loads(Path(sys.argv[1]).read_text()))
    else:
        read = json.loads(Path(sys.argv[1]).read_text())
        print(f"{tables(read)}\n{toml(read)}")

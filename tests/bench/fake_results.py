"""Invented results, to test how results are written."""

import numpy as np
from PIL import Image

from homing.bench.figures import Figure, colors
from homing.bench.report import CsvTable, PictureRow, Results
from homing.bench.tables import Table

SCRIPT = "<script>.jpg"
NAMES = ["plain.jpg", 'a,b "c".jpg', "two\nlines.jpg", "back\rhere.jpg", "", SCRIPT, "é\udcff.jpg"]
QUALITY = Table(
    name="quality",
    caption="What 100% of the files look like.",
    headings=["recipe", "probes", "PSNR", "a|b"],
    rows=[["passive", "1", "∞", ""], ["paper_fast", "exact", "43.8 ± 0.1 dB", "–"]],
    groups=[1],
)
SUMMARY = "2 photos among 10 references, from 8 distinct photos."


def lines(figure) -> None:
    axes = figure.subplots()
    for name, color in colors(["passive", "paper", "<b>&"]).items():
        axes.plot([0, 0.5, 1], [1, 0.8, len(name) / 10], color=color, label=name)
    axes.set_xscale("symlog")
    axes.legend()


def picture() -> Image.Image:
    return Image.fromarray(np.linspace(0, 255, 30 * 500 * 3).reshape(30, 500, 3).astype(np.uint8))


def fake_results(**changes: object) -> Results:
    values = {
        "title": "A <bench>",
        "summary": SUMMARY,
        "command": "homing bench retrieval --photos 'my photos/<i>'",
        "numbers": {
            "rows": [{"mean": 0.5, "psnr": None}],
            "settings": {"seed": 7, "distractors": {"photos": 8}, "probes": [1, "exact"], "limit": None},
            "failures": [f"{SCRIPT}: not a photo"],
        },
        "tables": [QUALITY],
        "figures": [
            Figure(name=name, caption="Precision & recall.", draw=lines, size=(3, 2)) for name in ("one", "two")
        ],
        "pictures": [PictureRow(caption=SCRIPT, pictures={"before": picture(), "after": picture().convert("RGBA")})],
        "csv_table": CsvTable(headings=["photo", "is_correct"], rows=([name, 1] for name in NAMES)),
    }
    return Results(**values | changes)

"""homing bench: benchmarks on your own photos; one file per bench."""

from __future__ import annotations

from homing.cli._app import App
from homing.cli.bench import (
    analysis,
    calibration,
    detection,
    edits,
    paper,
    quality,
    retrieval,
    search,
    speed,
    watermarks,
)

app = App(help="Run benchmarks on your own photos.", no_args_is_help=True)
app.command("retrieval")(retrieval.retrieval)
app.command("quality")(quality.quality)
app.command("edits")(edits.edits)
app.command("detection")(detection.detection)
app.command("analysis")(analysis.analysis)
app.command("search")(search.search)
app.command("calibration")(calibration.calibration)
app.command("watermarks")(watermarks.watermarks)
app.command("speed")(speed.speed)
app.command("paper")(paper.paper)


@app.callback()
def _group() -> None:
    """Run benchmarks on your own photos."""

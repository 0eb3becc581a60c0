"""The results of a bench, and how they are written."""

from homing.bench.results.document import CsvTable, Figure, PictureRow, Results, Table
from homing.bench.results.figures import PALETTE, bars, colors
from homing.bench.results.markdown import markdown
from homing.bench.results.writing import as_json, provenance, write_results

__all__ = [
    "PALETTE",
    "CsvTable",
    "Figure",
    "PictureRow",
    "Results",
    "Table",
    "as_json",
    "bars",
    "colors",
    "markdown",
    "provenance",
    "write_results",
]

"""The results of a bench, and how they are written."""

from homing.evaluation.results.document import CsvTable, Figure, PictureRow, Results, Table
from homing.evaluation.results.figures import PALETTE, bars, colors
from homing.evaluation.results.markdown import markdown
from homing.evaluation.results.writing import as_json, provenance, write_results

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

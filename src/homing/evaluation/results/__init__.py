"""What every bench hands over when it is done, and the one way it is written."""

from homing.evaluation.results.document import Figure, Lines, PictureRow, Results, Table
from homing.evaluation.results.figures import PALETTE, bars, colours
from homing.evaluation.results.markdown import markdown
from homing.evaluation.results.writing import as_json, provenance, write_results

__all__ = [
    "PALETTE",
    "Figure",
    "Lines",
    "PictureRow",
    "Results",
    "Table",
    "as_json",
    "bars",
    "colours",
    "markdown",
    "provenance",
    "write_results",
]

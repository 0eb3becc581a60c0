"""Results as files: for machines, for papers, for people."""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import faiss
import PIL
import torch

from homing import __version__
from homing._io.device import hardware
from homing._io.files import report_write_errors, write_atomically
from homing.evaluation.results.document import Results
from homing.evaluation.results.figures import draw
from homing.evaluation.results.latex import latex
from homing.evaluation.results.markdown import escape, markdown
from homing.evaluation.results.page import page


def write_results(results: Results, out: Path) -> None:
    """Write results.json, the lines as .csv, tables as .md and .tex, figures as .svg and .png, and report.html."""
    with report_write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    for name, data in _files(results):
        with report_write_errors(out / name):
            write_atomically(out / name, data)


def as_json(results: Results) -> dict[str, object]:
    """All but the single lines, and what it was made with, as one JSON document."""
    about = {"title": results.title, "summary": results.summary, "command": results.command}
    made_with = provenance()
    assert not results.numbers.keys() & {*about, *made_with}, "one of the numbers has a name that is taken"
    return {**about, **results.numbers, **made_with}


def provenance() -> dict[str, object]:
    """What the numbers were made with. No date, so that two runs can be compared."""
    versions = {
        "homing": __version__,
        "torch": torch.__version__,
        "faiss": faiss.__version__,
        "pillow": PIL.__version__,
        "python": platform.python_version(),
    }
    return {"versions": versions, "hardware": hardware()}


def _files(results: Results) -> Iterator[tuple[str, bytes]]:
    """Every file and what is in it, the numbers first: whatever goes wrong after that, they are there."""
    document = as_json(results)
    yield "results.json", (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
    if results.csv_table:
        yield f"{results.csv_table.name}.csv", _csv(results.csv_table.headings, results.csv_table.rows)
    for table in results.tables:
        caption = f"{table.caption} {results.summary}"  # a table goes its own ways, and says then what was measured
        text = f"{escape(caption)}\n\n{markdown(table.headings, table.rows)}"
        yield f"{table.name}.md", text.encode(errors="replace")
        yield f"{table.name}.tex", latex(table, caption).encode(errors="replace")
    drawings = {}
    for figure in results.figures:
        drawings[figure.name] = drawing = draw(figure)
        yield f"{figure.name}.svg", drawing.svg.encode()
        yield f"{figure.name}.png", drawing.png
    yield "report.html", page(results, document, drawings)


class _LineBuffer(list[str]):
    """Lines that csv writes.

    It is told to end them as its standard does, or it would leave a lone carriage return in a name unquoted; they are
    kept as other tools like them.
    """

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _csv(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    lines = _LineBuffer()
    writer = csv.writer(lines)
    writer.writerow(headings)
    writer.writerows(rows)
    return "".join(lines).encode(errors="surrogateescape")  # a name that is not text keeps its bytes

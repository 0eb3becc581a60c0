"""Write results as files: JSON, CSV, Markdown, LaTeX, figures, and an HTML page."""

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
from homing.bench.results.document import Results
from homing.bench.results.figures import draw
from homing.bench.results.latex import latex
from homing.bench.results.markdown import escape, markdown
from homing.bench.results.page import page


def write_results(results: Results, out: Path) -> None:
    """Write results.json, CSV rows, tables as .md and .tex, figures as .svg and .png, and report.html."""
    with report_write_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    for name, data in _files(results):
        with report_write_errors(out / name):
            write_atomically(out / name, data)


def as_json(results: Results) -> dict[str, object]:
    """The JSON document: everything except the CSV rows, with versions and hardware."""
    about = {"title": results.title, "summary": results.summary, "command": results.command}
    environment = provenance()
    assert not results.numbers.keys() & {*about, *environment}, "one of the numbers has a reserved name"
    return {**about, **results.numbers, **environment}


def provenance() -> dict[str, object]:
    """Versions and hardware. No date, so that two runs can be compared."""
    versions = {
        "homing": __version__,
        "torch": torch.__version__,
        "faiss": faiss.__version__,
        "pillow": PIL.__version__,
        "python": platform.python_version(),
    }
    return {"versions": versions, "hardware": hardware()}


def _files(results: Results) -> Iterator[tuple[str, bytes]]:
    """Each file name and its content; the numbers first, so that they are written whatever fails later."""
    document = as_json(results)
    yield "results.json", (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
    if results.csv_table:
        yield f"{results.csv_table.name}.csv", _csv(results.csv_table.headings, results.csv_table.rows)
    for table in results.tables:
        caption = f"{table.caption} {results.summary}"  # tables are used on their own, and need it there
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
    """The lines that csv.writer writes, with \\n line ends.

    csv.writer itself must end lines with \\r\\n: otherwise it leaves a lone carriage return in a name unquoted.
    """

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _csv(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    lines = _LineBuffer()
    writer = csv.writer(lines)
    writer.writerow(headings)
    writer.writerows(rows)
    return "".join(lines).encode(errors="surrogateescape")  # file names that are not UTF-8 keep their bytes

"""The results of a bench, written as files: JSON, CSV, Markdown, LaTeX, figures, and a page that loads nothing."""

from __future__ import annotations

import csv
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import faiss
import PIL
import torch

from homing import __version__
from homing._io.files import report_write_errors, write_atomically
from homing._tensors import hardware
from homing.bench.figures import Drawing, Figure, draw
from homing.bench.tables import STEM, Table, escape_markdown, latex, markdown
from homing.imaging import embed, render_page

if TYPE_CHECKING:
    from PIL import Image

_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r'( id="|url\(#|href="#)')


@dataclass(frozen=True, kw_only=True)
class PictureRow:
    """Pictures side by side, by caption, such as original, released and difference."""

    caption: str
    pictures: Mapping[str, Image.Image]


@dataclass(frozen=True, kw_only=True)
class CsvTable:
    """A CSV file of the raw results: by default a row for each search."""

    name: str = "queries"  # of its file, without a suffix
    content: str = "every search"  # one row each
    headings: Sequence[str]
    rows: Iterable[Sequence[object]]

    def __post_init__(self) -> None:
        assert STEM.fullmatch(self.name), self.name


@dataclass(frozen=True, kw_only=True)
class Results:
    """The report of a bench.

    `numbers` are written as one JSON document; its settings and failures are on the page too.
    """

    title: str
    summary: str  # one line: what was measured, among how many references, from how many distinct photos
    command: str  # that repeats the run
    numbers: Mapping[str, object]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    pictures: Sequence[PictureRow] = ()
    csv_table: CsvTable | None = None

    def __post_init__(self) -> None:
        for exhibits in (self.tables, self.figures):
            names = [each.name for each in exhibits]
            assert len(set(names)) == len(names), f"two of {names} would be the same file"

    def as_json(self) -> dict[str, object]:
        """The JSON document: everything except the CSV rows, with versions and hardware."""
        about = {"title": self.title, "summary": self.summary, "command": self.command}
        environment = _provenance()
        assert not self.numbers.keys() & {*about, *environment}, "one of the numbers has a reserved name"
        return {**about, **self.numbers, **environment}

    def write(self, out: Path) -> None:
        """Write results.json, CSV rows, tables as .md and .tex, figures as .svg and .png, and report.html."""
        with report_write_errors(out):
            out.mkdir(parents=True, exist_ok=True)
        for name, data in self._files():
            with report_write_errors(out / name):
                write_atomically(out / name, data)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Each file name and its content; the numbers first, so that they are written whatever fails later."""
        document = self.as_json()
        yield "results.json", (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
        if self.csv_table:
            yield f"{self.csv_table.name}.csv", _csv(self.csv_table.headings, self.csv_table.rows)
        for table in self.tables:
            caption = f"{table.caption} {self.summary}"  # tables are used on their own, and need it there
            text = f"{escape_markdown(caption)}\n\n{markdown(table.headings, table.rows)}"
            yield f"{table.name}.md", text.encode(errors="replace")
            yield f"{table.name}.tex", latex(table, caption).encode(errors="replace")
        drawings = {}
        for figure in self.figures:
            drawings[figure.name] = drawing = draw(figure)
            yield f"{figure.name}.svg", drawing.svg.encode()
            yield f"{figure.name}.png", drawing.png
        yield "report.html", _page(self, document, drawings)


def _provenance() -> dict[str, object]:
    """Versions and hardware. No date, so that two runs can be compared."""
    versions = {
        "homing": __version__,
        "torch": torch.__version__,
        "faiss": faiss.__version__,
        "pillow": PIL.__version__,
        "python": platform.python_version(),
    }
    return {"versions": versions, "hardware": hardware()}


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


def _page(results: Results, document: Mapping[str, object], drawings: Mapping[str, Drawing]) -> bytes:
    """The page of a bench, from its results, its JSON document, and its rendered figures by name."""
    settings = document.get("settings", {})
    assert isinstance(settings, Mapping)
    about = {**settings, "versions": document["versions"], "hardware": document["hardware"]}
    values = {
        "results": results,
        "drawings": {name: _inline(name, drawing.svg) for name, drawing in drawings.items()},
        "rows": [
            (row.caption, {name: embed(picture) for name, picture in row.pictures.items()}) for row in results.pictures
        ],
        "metadata": {str(name).replace("_", " "): _as_text(value) for name, value in about.items()},
        "failures": document.get("failures", ()),
    }
    return render_page("results.html", values, "homing.bench")


def _inline(name: str, svg: str) -> str:
    """An SVG for embedding: ids get a prefix, as they must be unique in the page."""
    inner = svg[svg.index("<svg") :]
    return _TAG.sub(lambda tag: _ID.sub(rf"\g<1>{name}-", tag[0]), inner)


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_as_text(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_as_text(each) for each in value)
    return "none" if value is None else str(value)

"""The results of a bench, ready to be written: numbers, tables, figures, pictures, and CSV rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import matplotlib.figure
    from PIL import Image

# Digits with signs, optionally a power of ten and a short unit; a dash for a missing number.
_NUMBER = re.compile(r"(?=.*[\d∞–—-])[-+−±<>≤≥≈~×√∞–—%(),./\d\s]*(e[-+]?\d+)?( [a-zA-Zµ]{1,5})?")
_STEM = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under headings; `groups` are the rows that a rule is drawn before."""

    name: str  # of its files, without a suffix
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[int] = ()

    def __post_init__(self) -> None:
        assert _STEM.fullmatch(self.name), self.name
        assert all(len(row) == len(self.headings) for row in self.rows), "a row has more or fewer cells than headings"

    @property
    def number_columns(self) -> list[bool]:
        """Which columns hold numbers, judged by the majority of cells: 'exact' may be among the probes."""
        return [_holds_numbers([row[column] for row in self.rows]) for column in range(len(self.headings))]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: `draw` is called with an empty matplotlib figure."""

    name: str  # of its files, without a suffix
    caption: str
    draw: Callable[[matplotlib.figure.Figure], None]
    size: tuple[float, float] = (6.4, 3.8)  # inches

    def __post_init__(self) -> None:
        assert _STEM.fullmatch(self.name), self.name


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
        assert _STEM.fullmatch(self.name), self.name


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


def _holds_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and 2 * sum(_NUMBER.fullmatch(cell) is not None for cell in filled) >= len(filled)

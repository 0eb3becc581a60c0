"""The outcome of a bench, ready to be written: numbers, tables, figures, pictures, and line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import matplotlib.figure
    from PIL import Image

# Digits with their signs, perhaps a power of ten, perhaps a short unit; a dash stands where there is no number.
_NUMBER = re.compile(r"(?=.*[\d∞–—-])[-+−±<>≤≥≈~×√∞–—%(),./\d\s]*(e[-+]?\d+)?( [a-zA-Zµ]{1,5})?")
_STEM = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under headings; a rule is drawn before the rows that begin a group."""

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
        """Which columns hold numbers: a word among them, such as exact, does not make it text."""
        return [_holds_numbers([row[column] for row in self.rows]) for column in range(len(self.headings))]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What draws itself onto an empty matplotlib figure."""

    name: str  # of its files, without a suffix
    caption: str
    draw: Callable[[matplotlib.figure.Figure], None]
    size: tuple[float, float] = (6.4, 3.8)  # inches

    def __post_init__(self) -> None:
        assert _STEM.fullmatch(self.name), self.name


@dataclass(frozen=True, kw_only=True)
class PictureRow:
    """Pictures side by side, by what stands under each: a photo as it was, as released, and the difference."""

    caption: str
    pictures: Mapping[str, Image.Image]


@dataclass(frozen=True, kw_only=True)
class CsvTable:
    """A CSV file of what the numbers were made from: by default a line for each search."""

    name: str = "queries"  # of its file, without a suffix
    content: str = "every search"  # that has a line
    headings: Sequence[str]
    rows: Iterable[Sequence[object]]

    def __post_init__(self) -> None:
        assert _STEM.fullmatch(self.name), self.name


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that a bench has to say.

    The numbers are one JSON document; what stands there under settings and failures is on the page too.
    """

    title: str
    summary: str  # one line: what was measured, among how many references, from how many distinct photos
    command: str  # that does it again
    numbers: Mapping[str, object]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    pictures: Sequence[PictureRow] = ()
    csv_table: CsvTable | None = None

    def __post_init__(self) -> None:
        for some in (self.tables, self.figures):
            names = [each.name for each in some]
            assert len(set(names)) == len(names), f"two of {names} would be one file"


def _holds_numbers(cells: Sequence[str]) -> bool:
    said = [cell for cell in cells if cell.strip()]
    return bool(said) and 2 * sum(_NUMBER.fullmatch(cell) is not None for cell in said) >= len(said)

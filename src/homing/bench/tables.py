"""Tables of a report, and how they are written in Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
"""A row of results.json."""
Column = str | Callable[[Row], str]
"""A cell of a row: a key, or a function of the row."""
Columns = Mapping[str, Column]
"""Columns of a table by heading."""

STEM = re.compile(r"[a-z0-9][a-z0-9_-]*")
# Digits with signs, optionally a power of ten and a short unit; a dash for a missing number.
_NUMBER = re.compile(r"(?=.*[\d∞–—-])([-+−±<>≤≥≈~×√∞–—%(),./\d\s]|\bto\b)*(e[-+]?\d+)?( [a-zA-Zµ]{1,5})?")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under headings; `groups` are the rows that a rule is drawn before."""

    name: str  # of its files, without a suffix
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        columns: Columns,
        rows: Iterable[Row],
        *,
        published: Sequence[Mapping[str, str]] = (),
        groups: Sequence[int] = (),
    ) -> Table:
        """A table of these columns with a line for each row, and published lines, by heading, below a rule."""
        lines = [cells(row, columns) for row in rows]
        theirs = [[line.get(heading, "") for heading in columns] for line in published]
        groups = [*groups, len(lines)] if published else groups
        return cls(name=name, caption=caption, headings=list(columns), rows=[*lines, *theirs], groups=groups)

    def __post_init__(self) -> None:
        assert STEM.fullmatch(self.name), self.name
        assert all(len(row) == len(self.headings) for row in self.rows), "a row has more or fewer cells than headings"

    @property
    def number_columns(self) -> list[bool]:
        """Which columns hold numbers, judged by the majority of cells: 'exact' may be among the probes."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.headings)
        filled = ([cell for cell in column if cell.strip()] for column in columns)
        return [bool(each) and 2 * sum(map(bool, map(_NUMBER.fullmatch, each))) >= len(each) for each in filled]


def cells(row: Row, columns: Columns) -> list[str]:
    """The cells of a row."""
    return [str(row[column]) if isinstance(column, str) else column(row) for column in columns.values()]


def transposed(rows: Sequence[Row], columns: Columns) -> list[list[str]]:
    """A line for each column: its heading, then its cells."""
    return [list(line) for line in zip(columns, *(cells(row, columns) for row in rows), strict=True)]


def fixed(value: Any, digits: int) -> str:
    """A number or a spread with this many decimals; empty if there is none."""
    return "" if value is None else f"{value:.{digits}f}"


def number(key: str, digits: int) -> Column:
    """A column of numbers with this many decimals."""
    return lambda row: fixed(row[key], digits)


def by_label(key: str, labels: Iterable[str], digits: int) -> dict[str, Column]:
    """A column for each label, of a row that has a number for each under this key."""

    def column(label: str) -> Column:
        return lambda row: fixed(row[key][label], digits)

    return {label: column(label) for label in labels}


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """A share and its interval."""
    return f"{value:.3f} ({interval[0]:.3f}–{interval[1]:.3f})"


def group_starts(keys: Sequence[object]) -> list[int]:
    """The rows whose key differs from that of the row before."""
    return [number for number in range(1, len(keys)) if keys[number] != keys[number - 1]]


# Markdown: characters that would end a cell or be read as markup; an underscore inside a word is not.
_MARKS = re.compile(r"[\\|`*~<\[]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of plain text."""
    lines = [[escape_markdown(cell) for cell in line] for line in (headings, *rows)]
    lines.insert(1, ["---"] * len(headings))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


_NEEDS = r"% Needs \usepackage{booktabs}; a table made to fit the line also \usepackage{graphicx}."
_LINE = 80  # characters that fit the line width

_AS_TEXT = {
    "\\": "textbackslash",
    "~": "textasciitilde",
    "^": "textasciicircum",
    "<": "textless",
    ">": "textgreater",
    "|": "textbar",
    "–": "textendash",
    "—": "textemdash",
    "°": "textdegree",
    "…": "ldots",
}
_AS_MATH = {
    "∞": r"\infty",
    "±": r"\pm",
    "×": r"\times",
    "√": r"\surd",
    "−": "-",
    "·": r"\cdot",
    "→": r"\rightarrow",
    "≤": r"\leq",
    "≥": r"\geq",
    "≈": r"\approx",
    "µ": r"\mu",  # the micro sign; below is the Greek letter
    "μ": r"\mu",
    "α": r"\alpha",
    "β": r"\beta",
    "γ": r"\gamma",
    "δ": r"\delta",
    "ε": r"\varepsilon",
    "λ": r"\lambda",
    "π": r"\pi",
    "σ": r"\sigma",
    "τ": r"\tau",
    "Δ": r"\Delta",
    "⁻": "^{-}",
    **{raised: f"^{digit}" for digit, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{lowered: f"_{digit}" for digit, lowered in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}
_ESCAPED = {
    **{sign: f"\\{sign}" for sign in "%&#$_{}"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # after the end of a row these would be its arguments
    **{sign: f"\\{name}{{}}" for sign, name in _AS_TEXT.items()},
    **{sign: f"${maths}$" for sign, maths in _AS_MATH.items()},
    "-": "-{}",  # only before another one: two in a row would become an en dash
}
_SIGNS = re.compile("|".join(re.escape(sign) for sign in _ESCAPED if sign != "-") + "|-(?=-)")


def latex(table: Table, caption: str) -> str:
    """A booktabs table with its caption above; a wide table is scaled to the line width."""
    body = [r"\toprule", _row(table.headings), r"\midrule"]
    for position, row in enumerate(table.rows):
        if position and position in table.groups:
            body.append(r"\midrule")
        body.append(_row(row))
    columns = "".join("c" if numbers else "l" for numbers in table.number_columns)
    width = sum(2 + max(map(len, column)) for column in zip(table.headings, *table.rows, strict=True))
    shrink, end = (r"\resizebox{\linewidth}{!}{%" + "\n", "}") if width > _LINE else ("", "")
    lines = [
        _NEEDS,
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"{shrink}\begin{{tabular}}{{{columns}}}",
        *body,
        r"\bottomrule",
        rf"\end{{tabular}}{end}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, on one line, without unprintable characters."""
    line = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    return _SIGNS.sub(lambda sign: _ESCAPED[sign[0]], line)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(escape_latex(cell) for cell in cells) + r" \\"

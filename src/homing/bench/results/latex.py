"""Tables in LaTeX, ready for a paper."""

from __future__ import annotations

import re
from collections.abc import Sequence

from homing.bench.results.document import Table

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
    shrink, end = (r"\resizebox{\linewidth}{!}{%" + "\n", "}") if _is_wide(table) else ("", "")
    lines = [
        _NEEDS,
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"{shrink}\begin{{tabular}}{{{columns}}}",
        *body,
        r"\bottomrule",
        rf"\end{{tabular}}{end}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Escape text for LaTeX, on one line, without unprintable characters."""
    line = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    return _SIGNS.sub(lambda sign: _ESCAPED[sign[0]], line)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(escape(cell) for cell in cells) + r" \\"


def _is_wide(table: Table) -> bool:
    columns = zip(table.headings, *table.rows, strict=True)
    return sum(2 + max(len(cell) for cell in column) for column in columns) > _LINE

"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Characters that would end a cell or be read as markup; an underscore inside a word is not.
_MARKS = re.compile(r"[\\|`*~<\[]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of plain text."""
    lines = [[escape(cell) for cell in line] for line in (headings, *rows)]
    lines.insert(1, ["---"] * len(headings))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape(text: str) -> str:
    """Escape text for Markdown, on one line."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))

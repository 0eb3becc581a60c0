"""Tables in LaTeX and Markdown."""

import re

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from homing.bench.tables import Table, escape_latex, latex, markdown


def test_a_wide_table_is_scaled_to_the_line_width() -> None:
    wide = Table(name="wide", caption="", headings=["brightness-0.5"] * 9, rows=[["1.00"] * 9])
    text = latex(wide, "")
    assert "\\resizebox{\\linewidth}{!}{%\n\\begin{tabular}{ccccccccc}\n" in text
    assert "\\end{tabular}}\n" in text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("100% & #1_a {x}", r"100\% \& \#1\_a \{x\}"),
        (r"C:\a~b^2 $5", r"C:\textbackslash{}a\textasciitilde{}b\textasciicircum{}2 \$5"),
        ("∞ ± µ … – × √2 43.8² α", r"$\infty$ $\pm$ $\mu$ \ldots{} \textendash{} $\times$ $\surd$2 43.8$^2$ $\alpha$"),
        ("--out ---", "-{}-out -{}-{}-"),
        ("[1] * <a|b>", r"{[}1{]} {*} \textless{}a\textbar{}b\textgreater{}"),
        ("two\n\nlines\x00", "two lines"),
    ],
)
def test_latex_escapes_text(text: str, escaped: str) -> None:
    assert escape_latex(text) == escaped


SPECIAL = {
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textless": "<",
    "textgreater": ">",
    "textbar": "|",
}


@given(st.text(st.sampled_from("%_&#$~^\\{}[]*<>|-a1 (")))
def test_latex_escapes_every_special_character(text: str) -> None:
    escaped = escape_latex(text)
    rest = re.sub(r"\\text[a-z]+\{\}|\\[%_&#$~^{}]|\{[][*]\}|-\{\}", "", escaped)
    assert not set(rest) & set("%_&#$~^\\{}[]*<>|")
    assert "--" not in escaped
    # Unescaped as LaTeX does, it is the text again.
    read = re.sub(
        r"\\(text[a-z]+)\{\}|\\([%_&#$~^{}])|\{([][*])\}|(-)\{\}",
        lambda found: SPECIAL.get(found[1], found[2] or found[3] or found[4]),
        escaped,
    )
    assert read == " ".join(text.split())


@given(st.lists(st.text(st.sampled_from("\\|`*~<>[]()&_!#a1;\n lt")), min_size=1, max_size=3))
def test_markdown_escapes_text(cells: list[str]) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = [token for token in parser.parse(markdown(cells, [cells])) if token.type == "inline"]
    texts = ["".join(child.content for child in token.children or ()) for token in tokens]
    assert texts == 2 * [" ".join(cell.split()) for cell in cells]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["0.52", "1.00"], True),
        (["43.8 dB", "∞", "–", ""], True),
        (["1", "16", "exact"], True),
        (["1.5e-06", "−3", "+4,000", "12%"], True),
        (["passive", "paper"], False),
        (["2023.jpg", "1.png"], False),
        (["", " "], False),
    ],
)
def test_columns_of_numbers_are_recognized(cells: list[str], numbers: bool) -> None:
    table = Table(name="table", caption="", headings=["x"], rows=[[cell] for cell in cells])
    assert table.number_columns == [numbers]

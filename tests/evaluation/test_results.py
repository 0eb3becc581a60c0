"""Results as files: every one of them is what it says it is."""

import csv
import json
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PIL import Image

from homing import __version__
from homing._drawing import check_drawing
from homing.errors import HomingError
from homing.evaluation.results import Figure, PictureRow, Results, Table, as_json, colours, markdown, write_results
from homing.evaluation.results.figures import draw
from homing.evaluation.results.latex import escape, latex

SCRIPT = "<script>.jpg"
NAMES = ["plain.jpg", 'a,b "c".jpg', "two\nlines.jpg", "back\rhere.jpg", "", SCRIPT, "é\udcff.jpg"]
QUALITY = Table(
    name="quality",
    caption="What 100% of the files look like.",
    headings=["recipe", "probes", "PSNR", "a|b"],
    rows=[["passive", "1", "∞", ""], ["paper_fast", "exact", "43.8 ± 0.1 dB", "–"]],
    groups=[1],
)
SETTING = "2 photos among 10 references, from 8 distinct photos."


def lines(figure) -> None:
    axes = figure.subplots()
    for name, colour in colours(["passive", "paper", "<b>&"]).items():
        axes.plot([0, 0.5, 1], [1, 0.8, len(name) / 10], color=colour, label=name)
    axes.set_xscale("symlog")
    axes.legend()


def picture() -> Image.Image:
    return Image.fromarray(np.linspace(0, 255, 30 * 500 * 3).reshape(30, 500, 3).astype(np.uint8))


def made_up(**changes: object) -> Results:
    values = {
        "title": "A <bench>",
        "setting": SETTING,
        "command": "homing bench retrieval --photos 'my photos/<i>'",
        "numbers": {
            "rows": [{"mean": 0.5, "psnr": None}],
            "settings": {"seed": 7, "strangers": {"photos": 8}, "probes": [1, "exact"], "limit": None},
            "failures": [f"{SCRIPT}: not a photo"],
        },
        "tables": [QUALITY],
        "figures": [
            Figure(name=name, caption="Precision & recall.", draw=lines, size=(3, 2)) for name in ("one", "two")
        ],
        "pictures": [PictureRow(caption=SCRIPT, pictures={"before": picture(), "after": picture().convert("RGBA")})],
        "queries": (["photo", "home"], ([name, 1] for name in NAMES)),
    }
    return Results(**values | changes)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one bench, in a folder that was not there."""
    folder = tmp_path_factory.mktemp("bench") / "new" / "out"
    write_results(made_up(), folder)
    return folder


def test_nothing_else_is_written(out: Path) -> None:
    assert {path.name for path in out.iterdir()} == {
        "results.json",
        "queries.csv",
        "quality.md",
        "quality.tex",
        *(f"{name}.{kind}" for name in ("one", "two") for kind in ("svg", "png")),
        "report.html",
    }


def test_the_numbers_are_one_document(out: Path) -> None:
    said = json.loads((out / "results.json").read_text())
    results = made_up()
    assert said == as_json(results)
    assert said | results.numbers == said
    assert (said["setting"], said["command"]) == (results.setting, results.command)
    assert said["versions"]["homing"] == __version__
    assert said["hardware"]


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_results(made_up(numbers={"mean": float("nan")}), tmp_path)


def test_every_search_is_read_back_whatever_the_photo_is_called(out: Path) -> None:
    with (out / "queries.csv").open(newline="", errors="surrogateescape") as file:
        assert list(csv.reader(file)) == [["photo", "home"], *([name, "1"] for name in NAMES)]
    assert (out / "queries.csv").read_bytes().startswith(b"photo,home\nplain.jpg,1\n")


def test_a_bench_may_have_numbers_alone(tmp_path: Path) -> None:
    write_results(Results(title="t", setting="s", command="c", numbers={}), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "report.html"}


def test_the_table_for_notes(out: Path) -> None:
    assert (out / "quality.md").read_text() == (
        f"What 100% of the files look like. {SETTING}\n"
        "\n"
        r"| recipe | probes | PSNR | a\|b |" + "\n"
        "| --- | --- | --- | --- |\n"
        "| passive | 1 | ∞ |  |\n"
        "| paper_fast | exact | 43.8 ± 0.1 dB | – |\n"
    )


def test_the_table_for_papers(out: Path) -> None:
    assert (out / "quality.tex").read_text() == (
        r"""% Needs \usepackage{booktabs}; a table made to fit the line also \usepackage{graphicx}.
\begin{table}[t]
\centering
\caption{What 100\% of the files look like. 2 photos among 10 references, from 8 distinct photos.}
\label{tab:quality}
\begin{tabular}{lccc}
\toprule
recipe & probes & PSNR & a\textbar{}b \\
\midrule
passive & 1 & $\infty$ &  \\
\midrule
paper\_fast & exact & 43.8 $\pm$ 0.1 dB & \textendash{} \\
\bottomrule
\end{tabular}
\end{table}
"""
    )


def test_a_wide_table_shrinks_to_the_line() -> None:
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
def test_latex_prints_what_was_written(text: str, escaped: str) -> None:
    assert escape(text) == escaped


SPECIAL = {
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textless": "<",
    "textgreater": ">",
    "textbar": "|",
}


@given(st.text(st.sampled_from("%_&#$~^\\{}[]*<>|-a1 (")))
def test_no_special_character_reaches_latex(text: str) -> None:
    escaped = escape(text)
    rest = re.sub(r"\\text[a-z]+\{\}|\\[%_&#$~^{}]|\{[][*]\}|-\{\}", "", escaped)
    assert not set(rest) & set("%_&#$~^\\{}[]*<>|")
    assert "--" not in escaped
    # Read as LaTeX would read it, it is the text again.
    read = re.sub(
        r"\\(text[a-z]+)\{\}|\\([%_&#$~^{}])|\{([][*])\}|(-)\{\}",
        lambda found: SPECIAL.get(found[1], found[2] or found[3] or found[4]),
        escaped,
    )
    assert read == " ".join(text.split())


@given(st.lists(st.text(st.sampled_from("\\|`*~<>[]()&_!#a1;\n lt")), min_size=1, max_size=3))
def test_markdown_shows_what_was_written(cells: list[str]) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = [token for token in parser.parse(markdown(cells, [cells])) if token.type == "inline"]
    shown = ["".join(child.content for child in token.children or ()) for token in tokens]
    assert shown == 2 * [" ".join(cell.split()) for cell in cells]


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
def test_columns_of_numbers_are_known(cells: list[str], numbers: bool) -> None:
    table = Table(name="table", caption="", headings=["x"], rows=[[cell] for cell in cells])
    assert table.number_columns == [numbers]


@pytest.mark.parametrize("name", ["one", "two"])
def test_figures_open(out: Path, name: str) -> None:
    with Image.open(out / f"{name}.png") as image:
        image.load()
        assert image.size == (600, 400)
    root = ElementTree.parse(out / f"{name}.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"passive", "paper", "<b>&"} <= set(texts)


def test_the_same_numbers_give_the_same_bytes_whatever_somebody_likes(out: Path) -> None:
    import matplotlib

    figure = made_up().figures[0]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": None}):
        again = draw(figure)
    assert again.svg.encode() == (out / "one.svg").read_bytes() == (out / "two.svg").read_bytes()
    assert again.png == (out / "one.png").read_bytes()
    assert not re.search("20[0-9]{2}-|matplotlib.org|DOCTYPE", again.svg)


def test_drawing_leaves_no_trace() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(made_up().figures[0])
    assert dict(matplotlib.rcParams) == before


def test_passive_is_grey_and_no_two_are_alike() -> None:
    chosen = colours(["homing", "paper", "passive", "activated"])
    assert len(set(chosen.values())) == 4
    assert chosen["paper"] == colours(["activated"])["activated"]
    red, green, blue = bytes.fromhex(chosen["passive"][1:])
    assert max(red, green, blue) - min(red, green, blue) < 32


class Page(HTMLParser):
    """Reads a page: balanced tags, all its text, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.sources: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.sources += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(out: Path) -> Page:
    return Page((out / "report.html").read_text())


def test_the_page_is_well_formed_and_loads_nothing(out: Path, page: Page) -> None:
    assert not page.open
    text = (out / "report.html").read_text()
    assert set(re.findall(r"https?:[^\"\s]*", text)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert all(source.startswith(("data:image/jpeg;base64,", "#")) for source in page.sources)
    assert "script" not in page.tags
    assert "bench" not in page.tags


def test_the_page_tells_it_all(page: Page) -> None:
    results = made_up()
    text = " ".join(" ".join(page.texts).split())
    told = [
        results.title,
        results.setting,
        results.command,
        QUALITY.caption,
        *QUALITY.headings,
        *(cell for row in QUALITY.rows for cell in row),
        "Precision & recall.",
        f"{SCRIPT} before after",
        f"{SCRIPT}: not a photo",
        "seed 7",
        "strangers photos 8",
        "probes 1, exact",
        "limit none",
        f"homing {__version__}",
    ]
    assert all(each in text for each in told), [each for each in told if each not in text]
    assert page.tags.count("svg") == 2
    assert page.tags.count("img") == 2


def test_two_figures_on_a_page_keep_apart(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert {source[1:] for source in page.sources if source.startswith("#")} <= set(page.ids)


def test_a_picture_stays_as_it_was_given(tmp_path: Path) -> None:
    image = picture()
    results = made_up(pictures=[PictureRow(caption="", pictures={"a": image})], figures=[], tables=[])
    write_results(results, tmp_path)
    assert image.size == (500, 30)


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """A disk on which a larger file does not fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(HomingError) as raised, files_at_most(3_000):
        write_results(made_up(), tmp_path)
    assert str(raised.value) == f"cannot write {tmp_path / 'one.svg'}: File too large"
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "queries.csv", "quality.md", "quality.tex"}


def test_a_folder_that_cannot_be_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomingError, match=r"cannot write .*file: File exists$"):
        write_results(made_up(), tmp_path / "file")
    (tmp_path / "results.json").mkdir()
    with pytest.raises(HomingError, match=r"cannot write .*results\.json: Is a directory$"):
        write_results(made_up(), tmp_path)


def test_without_matplotlib_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = r"pictures are drawn with matplotlib; get it: pip install 'homing\[bench\]'"
    with pytest.raises(HomingError, match=line):
        check_drawing("bench")
    with pytest.raises(HomingError, match=line):
        write_results(made_up(), tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["rows"]
    write_results(made_up(figures=[]), tmp_path)

"""Figures and the page that shows them."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image
from tests.bench.fake_results import QUALITY, SCRIPT, fake_results, picture

from homing import __version__
from homing.bench.figures import colors, draw
from homing.bench.report import CsvTable, PictureRow


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one bench, in a new folder."""
    folder = tmp_path_factory.mktemp("bench") / "new" / "out"
    fake_results().write(folder)
    return folder


@pytest.mark.parametrize("name", ["one", "two"])
def test_figure_files_are_valid(out: Path, name: str) -> None:
    with Image.open(out / f"{name}.png") as image:
        image.load()
        assert image.size == (600, 400)
    root = ElementTree.parse(out / f"{name}.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"passive", "paper", "<b>&"} <= set(texts)


def test_figures_are_reproducible_whatever_the_users_style(out: Path) -> None:
    import matplotlib

    figure = fake_results().figures[0]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": None}):
        again = draw(figure)
    assert again.svg.encode() == (out / "one.svg").read_bytes() == (out / "two.svg").read_bytes()
    assert again.png == (out / "one.png").read_bytes()
    assert not re.search("20[0-9]{2}-|matplotlib.org|DOCTYPE", again.svg)


def test_drawing_does_not_change_matplotlib() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(fake_results().figures[0])
    assert dict(matplotlib.rcParams) == before


def test_passive_is_gray_and_colors_are_distinct() -> None:
    chosen = colors(["homing", "paper", "passive", "activated"])
    assert len(set(chosen.values())) == 4
    assert chosen["paper"] == colors(["activated"])["activated"]
    red, green, blue = bytes.fromhex(chosen["passive"][1:])
    assert max(red, green, blue) - min(red, green, blue) < 32


class Page(HTMLParser):
    """Parses a page: checks tags, collects its text and the addresses it would load."""

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


def test_the_page_contains_all_results(page: Page) -> None:
    results = fake_results()
    text = " ".join(" ".join(page.texts).split())
    expected_texts = [
        results.title,
        results.summary,
        results.command,
        QUALITY.caption,
        *QUALITY.headings,
        *(cell for row in QUALITY.rows for cell in row),
        "Precision & recall.",
        f"{SCRIPT} before after",
        f"{SCRIPT}: not a photo",
        "seed 7",
        "distractors photos 8",
        "probes 1, exact",
        "limit none",
        f"homing {__version__}",
    ]
    assert all(each in text for each in expected_texts), [each for each in expected_texts if each not in text]
    assert page.tags.count("svg") == 2
    assert page.tags.count("img") == 2


def test_wide_figures_have_their_own_row(tmp_path: Path) -> None:
    figures = [replace(fake_results().figures[0], name=f"w{width}", size=(width, 2)) for width in (6, 9)]
    fake_results(figures=figures).write(tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert re.findall(r'<figure class="exhibit( broad)?">\n<figcaption><b>Figure', text) == ["", " broad"]
    assert re.findall(r"--least: ([\d.]+)in", text) == ["4.20", "6.30"]


@pytest.mark.parametrize("lines", [{}, {"name": "photos", "content": "every photo"}])
def test_the_page_names_the_files_next_to_it(tmp_path: Path, lines: dict[str, str]) -> None:
    fake_results(csv_table=CsvTable(headings=["photo"], rows=[["a"]], **lines)).write(tmp_path)
    name, what = lines.get("name", "queries"), lines.get("content", "every search")
    assert f"{what} in <code>{name}.csv</code>" in (tmp_path / "report.html").read_text()
    assert (tmp_path / f"{name}.csv").read_text() == "photo\na\n"


def test_ids_of_two_figures_differ(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert {source[1:] for source in page.sources if source.startswith("#")} <= set(page.ids)


def test_embedding_does_not_change_the_picture(tmp_path: Path) -> None:
    image = picture()
    results = fake_results(pictures=[PictureRow(caption="", pictures={"a": image})], figures=[], tables=[])
    results.write(tmp_path)
    assert image.size == (500, 30)

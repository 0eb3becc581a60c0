"""`homing activate --report`, and the lines about photos with notes, errors or unchanged pixels."""

import csv
import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser
from tests.bench.helpers import homing, skimage_photos
from typer.testing import CliRunner

from homing import reports
from homing.cli import app
from homing.cli._outcomes import Tally
from homing.collection import Outcome
from homing.errors import HomingError
from homing.imaging import render_page
from homing.reports import write_report


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with the reports of a job, and what the job printed on stderr."""
    folder = tmp_path_factory.mktemp("report")
    inside = folder / "photos"
    inside.mkdir()
    skimage_photos(inside, ("chelsea.png",)).joinpath("chelsea.png").rename(inside / "<b>cat&.png")
    with Image.open(inside / "<b>cat&.png") as cat:
        cat.resize((300, 200)).save(inside / "small.webp", quality=40)
    Image.new("RGB", (300, 200), "white").save(inside / "blank.png")
    (inside / "broken.jpg").write_text("hello")
    homing("init", folder / "c.homing")
    command = ["activate", folder / "c.homing", inside, "--out", folder / "out", "--recipe", "paper-fast"]
    done = CliRunner().invoke(app, [*map(str, command), "--report", str(folder / "report.html"), "--json"])
    assert done.exit_code == 1, done.output
    (folder / "outcomes.json").write_text(done.stdout)
    homing(*command, "--report", folder / "report.csv", code=1)
    return folder, done.stderr


@pytest.fixture(scope="module")
def outcomes(job: tuple[Path, str]) -> list[Outcome]:
    """The outcomes of the job, read from its JSON."""
    return [
        Outcome(**each)
        for each in sorted(json.loads((job[0] / "outcomes.json").read_text()), key=lambda each: each["photo"])
    ]


@pytest.mark.slow
def test_only_photos_with_remarks_get_a_line(job: tuple[Path, str]) -> None:
    folder, stderr = job
    lines = stderr.splitlines()
    assert not any("<b>cat&.png" in line for line in lines)
    (failed,) = (line for line in lines if "broken.jpg" in line)
    (unchanged,) = (line for line in lines if "blank.png" in line)
    (note,) = (line for line in lines if "small.webp" in line)
    assert failed.startswith("failed    ") and unchanged.startswith("unchanged ")
    photo = re.escape(str(folder / "photos" / "small.webp"))
    assert re.fullmatch(rf"activated {photo}: written with .* of the change\. WebP grew from .* to .*\.", note)


def test_a_photo_with_a_reason_and_notes_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    report = Tally({}, lambda: None).count
    reason, notes = "written with finer quantization", ["AVIF grew from 1 KB to 3 KB.", "EXIF was dropped."]
    quality = {"psnr": 44.0, "ssim": 1.0, "linf": 3.0}
    for resumed in (False, True):
        report(Outcome(photo="a", state="activated", reason=reason, notes=notes, resumed=resumed, **quality))
        report(Outcome(photo="b", state="activated", reason=reason, resumed=resumed, **quality))
        report(Outcome(photo="c", state="activated", notes=notes, resumed=resumed, **quality))
        report(Outcome(photo="d", state="activated", resumed=resumed, **quality))
    lines = [
        f"activated a: {reason}. {' '.join(notes)}",
        f"activated b: {reason}",
        f"note      c: {' '.join(notes)}",
    ]
    assert capsys.readouterr().err.splitlines() == lines * 2


def test_json_has_sizes_and_notes(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.state == "failed":
            assert (outcome.bytes_before, outcome.bytes_after, outcome.notes) == (None, None, [])
        else:
            assert outcome.bytes_before == Path(outcome.photo).stat().st_size
            assert outcome.bytes_after == Path(str(outcome.released)).stat().st_size
    assert [Path(each.photo).name for each in outcomes if each.notes] == ["small.webp"]


def test_page_has_a_summary_and_each_photo_in_its_section(job: tuple[Path, str]) -> None:
    page = (job[0] / "report.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert re.search(r"activated 2 released unchanged 1 failed 1 size of the files .* mean PSNR 4\d\.\d dB", text)
    sections = re.split(r"<h2>", page)[1:]
    assert [section.split(" <")[0] for section in sections] == [
        "Failed", "Released unchanged", "Activated, with notes", "Activated"
    ]  # fmt: skip
    names = ("broken.jpg", "blank.png", "small.webp", "&lt;b&gt;cat&amp;.png")
    for section, name, pictures in zip(sections, names, (0, 1, 3, 3), strict=True):
        assert f"<h3>{name}</h3>" in section
        assert section.count("data:image/jpeg") == pictures
    assert "a graphic (one color)" in sections[1]


def test_page_is_small(job: tuple[Path, str]) -> None:
    empty = len(render_page("page.html", {}))
    assert (job[0] / "report.html").stat().st_size < empty + 4_000 + 4 * 10_000


def test_csv_has_a_row_per_photo(job: tuple[Path, str], outcomes: list[Outcome]) -> None:
    with (job[0] / "report.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["photo"] for row in rows] == [outcome.photo for outcome in outcomes]
    for row, outcome in zip(rows, outcomes, strict=True):
        assert (row["state"], row["notes"]) == (outcome.state, " ".join(outcome.notes))
        assert row["bytes_after"] == ("" if outcome.bytes_after is None else str(outcome.bytes_after))
        assert row["psnr"] == ("" if outcome.psnr is None else str(outcome.psnr))  # null where nothing changed
    assert [row["resumed"] for row in rows if row["state"] == "activated"] == ["True", "True"]


def test_large_jobs_have_pictures_of_photos_with_remarks_only(
    job: tuple[Path, str], outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MAX_PICTURES", 3)
    write_report(outcomes, job[0] / "large.html")
    page = (job[0] / "large.html").read_text()
    assert page.count("data:image/jpeg") == 1 + 3
    assert "Only 2 of them have pictures here" in page


def test_a_missing_file_is_named_in_place_of_pictures(job: tuple[Path, str], outcomes: list[Outcome]) -> None:
    (renamed,) = (outcome for outcome in outcomes if Path(outcome.photo).name == "small.webp")
    moved = Path(str(renamed.released)).rename(job[0] / "moved.webp")
    try:
        write_report([renamed], job[0] / "missing.html")
    finally:
        moved.rename(str(renamed.released))
    page = (job[0] / "missing.html").read_text()
    assert "data:image/jpeg" not in page and "No pictures: " in page


def test_page_fits_a_phone(job: tuple[Path, str], chromium: Browser) -> None:
    with closing(chromium.new_page(viewport={"width": 390, "height": 844})) as tab:
        tab.goto((job[0] / "report.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert all(box and box["width"] > 100 for box in (each.bounding_box() for each in tab.locator("img").all()))


def test_a_report_of_another_kind_is_refused_before_the_job(job: tuple[Path, str]) -> None:
    with pytest.raises(HomingError, match=r"--report takes FILE\.html or FILE\.csv"):
        homing("activate", job[0] / "c.homing", job[0] / "photos", "--out", job[0] / "no", "--report", "report.pdf")
    assert not (job[0] / "no").exists()

"""The quality bench on the command line."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from tests.bench.helpers import homing, skimage_photos

from homing.activation import RECIPES
from homing.bench.benches.quality import at_strength
from homing.edits import PAPER
from homing.errors import HomingError
from homing.extractors import describe_images
from homing.perception import JND, Linf, measure
from homing.perception.quality import load_lpips
from homing.photo import Photo

pytestmark = pytest.mark.slow

DISTRACTORS = ("astronaut.png", "coffee.png", "coins.png")
STRENGTHS = ["passive", "paper-fast-46dB", "paper-fast", "paper-fast-34dB"]  # from the highest PSNR to the lowest
RELEASES = [*STRENGTHS, "paper-fast-linf-34dB"]
PHOTOS = ["camera.png", "chelsea.png", "flower.jpg"]
SETTINGS = ("--distractors", 9, "--recipes", "paper-fast", "--psnrs", "34, 46", "--pictures", 2, "--limit", len(PHOTOS))
COMPARED = ("--budgets", "jnd, linf", "--budgets-at", 34, "--lpips")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distractor photos: not among the released ones."""
    return skimage_photos(tmp_path_factory.mktemp("others"), DISTRACTORS)


def bench(photos: Path, others: Path, out: Path, *more: object) -> str:
    """The output of `homing bench quality`."""
    return homing("bench", "quality", "--photos", photos, "--distractor-photos", others, "--out", out, *more)


@pytest.fixture(scope="module", autouse=True)
def _random_alexnet(torch_home: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(torch_home))
        yield


@pytest.fixture(scope="module")
def out(photos: Path, others: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one bench."""
    folder = tmp_path_factory.mktemp("quality") / "out"
    (folder.parent / "output.txt").write_text(bench(photos, others, folder, *SETTINGS, *COMPARED))
    return folder


@pytest.fixture(scope="module")
def rows(out: Path) -> dict[str, dict]:
    """The rows by the names of the releases."""
    return {row["release"]: row for row in json.loads((out / "results.json").read_text())["rows"]}


@pytest.fixture(scope="module")
def lines(out: Path) -> list[dict[str, str]]:
    """The rows of photos.csv."""
    with (out / "photos.csv").open() as file:
        return list(csv.DictReader(file))


def released(out: Path, photos: Path, release: str, name: str) -> Path:
    return (photos if release == "passive" else out / "released" / "homing-1" / release) / name


def test_the_quality_is_that_of_the_files(out: Path, photos: Path, rows: dict, lines: list) -> None:
    assert list(rows) == RELEASES
    for release, row in rows.items():
        mine = [line for line in lines if line["recipe"] == release]
        assert [line["photo"] for line in mine] == PHOTOS
        qualities = []
        for line in mine:
            before = Photo.load(photos / line["photo"])
            after = Photo.load(released(out, photos, release, line["photo"]))
            if line["state"] != "activated":
                assert after.data == before.data
                assert (line["psnr"], line["ssim"], line["linf"]) == ("", "", "")
                continue
            qualities.append(measure(before.pixels(), after.pixels()))
            assert float(line["psnr"]) == pytest.approx(qualities[-1].psnr, abs=1e-3)
            assert float(line["ssim"]) == pytest.approx(qualities[-1].ssim, abs=1e-4)
            assert float(line["linf"]) == pytest.approx(qualities[-1].linf)
        assert (row["activated"], row["photos"]) == (len(qualities), len(PHOTOS))
        for name in ("psnr", "ssim", "linf"):
            values = [getattr(quality, name) for quality in qualities]
            assert row[name] == (pytest.approx([fmean(values), pstdev(values)], abs=1e-4) if values else None)


def test_stronger_activation_is_nearer_to_the_code(out: Path, photos: Path, rows: dict, extractor, codebook) -> None:
    for release, row in rows.items():
        originals, activated = (
            describe_images(extractor, [Photo.load(path).pixels() for path in paths])
            for paths in ([photos / name for name in PHOTOS], [released(out, photos, release, name) for name in PHOTOS])
        )
        distances = (activated - codebook.reconstruct(originals)).norm(dim=1)
        assert row["distance"][0] == pytest.approx(float(distances.mean()), abs=1e-3)
    strengths = [rows[release] for release in STRENGTHS]
    distances = [row["distance"][0] for row in strengths]
    assert distances == sorted(distances, reverse=True)
    _, gentle, own, strong = (row["psnr"] and row["psnr"][0] for row in strengths)
    assert gentle >= 46 > own >= 43.8 > 36 > strong >= 34
    assert [row["own_budget"] for row in strengths] == [True, False, True, False]


def test_budgets_are_compared(out: Path, rows: dict, lines: list) -> None:
    jnd, linf = (rows[f"paper-fast{kind}-34dB"] for kind in ("", "-linf"))
    assert jnd["psnr"][0] == pytest.approx(linf["psnr"][0], abs=0.4)
    assert jnd["linf"][0] > 2 * linf["linf"][0]
    assert jnd["ssim"][0] > linf["ssim"][0]  # as in the paper: flat parts are spared
    assert linf["budget"] == "L∞ at 34 dB"
    table = (out / "budgets.md").read_text()
    assert table.count("L∞ at 34 dB") == table.count("JND at 34 dB") == 1
    assert "| L∞ with alpha 4 | 1 | 36.4 | 0.91 | 4 |" in table
    assert "L∞ at 34 dB" not in (out / "trade-off.md").read_text()
    svg = (out / "budgets.svg").read_text()
    assert all(text in svg for text in ("original", "JND at 34 dB", "L∞ at 34 dB", "LPIPS"))
    assert len(re.findall("<image ", svg)) == 2 * 3
    # The first photo that was activated with both.
    printed = next(line for line in lines if line["recipe"] == "paper-fast-linf-34dB" and line["state"] == "activated")
    assert f"PSNR {float(printed['psnr']):.1f} dB" in svg


def test_lpips_is_that_of_the_files(out: Path, photos: Path, rows: dict, lines: list) -> None:
    distance = load_lpips()
    assert rows["passive"]["lpips"] is None
    for release in ("paper-fast", "paper-fast-34dB"):
        measured = []
        for line in (line for line in lines if line["recipe"] == release and line["state"] == "activated"):
            pair = (photos / line["photo"], released(out, photos, release, line["photo"]))
            measured.append(distance(*(Photo.load(path).pixels() for path in pair)))
            assert float(line["lpips"]) == pytest.approx(measured[-1], abs=1e-5)
        assert rows[release]["lpips"][0] == pytest.approx(fmean(measured), rel=1e-3)
    assert 0 < rows["paper-fast"]["lpips"][0] < rows["paper-fast-34dB"]["lpips"][0]


def test_copies_found_add_up_to_the_recall(rows: dict, lines: list) -> None:
    for release, row in rows.items():
        mine = [int(line["copies_found"]) for line in lines if line["recipe"] == release]
        assert row["recall"] == pytest.approx(sum(mine) / (len(mine) * len(PAPER)))
        assert row["interval"][0] <= row["recall"] <= row["interval"][1]
        assert 0 < row["average_precision"] <= 1


def test_tables_include_the_published_figures(out: Path) -> None:
    quality, trade_off = ((out / f"{name}.md").read_text() for name in ("quality", "trade-off"))
    assert quality.count("| paper-fast |") == 1
    assert "LPIPS" in quality
    assert "43.8 ± 2.2 | 0.98 ± 0.01 | 14.5 ± 1.2" in quality
    assert all(trade_off.count(f"| {release} |") == 1 for release in STRENGTHS)
    assert "×2.0" in trade_off
    printed = (out.parent / "output.txt").read_text()
    assert all(release in printed for release in RELEASES)
    report = (out / "report.html").read_text()
    assert len(re.findall("<img ", report)) == 2 * 4
    assert (out / "trade-off.svg").is_file()


def test_another_run_uses_the_cache(
    out: Path, photos: Path, others: Path, rows: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("runs.activate_batch", "data.edited_copies", "benches.quality.load_lpips"):
        monkeypatch.setattr(f"homing.bench.{name}", lambda *_, **__: iter(()))
    output = json.loads(bench(photos, others, out, *SETTINGS, *COMPARED, "--json"))
    assert {row["release"]: row for row in output["rows"]} == rows


def test_strengths_may_be_the_papers_alphas(photos: Path, others: Path, tmp_path: Path) -> None:
    settings = ("--distractors", 3, "--recipes", "paper-fast", "--alphas", 4, "--limit", 1, "--json")
    settings += ("--budgets", "jnd", "--budgets-at", 43.8)  # the recipe's own
    output = json.loads(bench(photos, others, tmp_path / "out", *settings))
    psnrs = {row["release"]: row["psnr"] for row in output["rows"]}
    assert set(psnrs) == {"passive", "paper-fast", "paper-fast-alpha-4"}
    assert psnrs["paper-fast"][0] > psnrs["paper-fast-alpha-4"][0]
    assert not (tmp_path / "out" / "budgets.svg").exists()
    assert "LPIPS" not in (tmp_path / "out" / "quality.md").read_text()


def test_the_recipes_own_strength_is_measured_once() -> None:
    paper = RECIPES["paper"]
    assert at_strength(paper, JND(psnr=43.8)) is paper
    assert at_strength(paper, JND(psnr=40)).name == "paper-40dB"
    assert at_strength(paper, JND(alpha=3)).name == "paper-alpha-3"
    assert at_strength(paper, JND(alpha=3)).steps == paper.steps
    assert at_strength(paper, Linf(psnr=36)).name == "paper-linf-36dB"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--psnrs", "40,strong"], "--psnrs takes comma-separated numbers, got 'strong'"),
        (["--alphas", ""], "--alphas takes comma-separated numbers, got ''"),
        (["--psnrs", "40", "--alphas", "3"], "got both"),
        (["--psnrs", "40,10"], "psnr must be between 20 and 80 dB, got 10"),
        (["--alphas", "nan"], "alpha must be above 0 and at most 100, got nan"),
        (["--recipes", "papper"], "unknown recipe 'papper'; did you mean 'paper'?"),
        (["--recipes", "passive,paper"], "passive has no strength and is always measured"),
        (["--budgets", "jnd,l8"], "unknown budget 'l8'"),
        (["--budgets-at", "10"], "psnr must be between 20 and 80 dB, got 10"),
    ],
)
def test_a_wrong_call_gets_one_line(photos: Path, others: Path, tmp_path: Path, more: list[str], line: str) -> None:
    with pytest.raises(HomingError) as raised:
        bench(photos, others, tmp_path / "out", *more)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()

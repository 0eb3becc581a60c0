"""The quality bench, as a script would call it."""

import csv
import json
import re
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from tests.evaluation.small import homing, skimage_photos

from homing.activation import RECIPES
from homing.edits import PAPER
from homing.errors import HomingError
from homing.evaluation.benches.quality import at_strength
from homing.extractors import describe
from homing.perception import JND, measure
from homing.photo import Photo

STRANGERS = ("astronaut.png", "coffee.png", "coins.png")
RELEASES = ["passive", "paper-fast-46dB", "paper-fast", "paper-fast-34dB"]  # from gentle to strong
PHOTOS = ["camera.png", "chelsea.png", "flower.jpg"]
SETTINGS = ("--strangers", 9, "--recipes", "paper-fast", "--psnrs", "34, 46", "--pictures", 2, "--limit", len(PHOTOS))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos of skimage that no test releases."""
    return skimage_photos(tmp_path_factory.mktemp("others"), STRANGERS)


def bench(photos: Path, others: Path, out: Path, *more: object) -> str:
    """What `homing bench quality` prints."""
    return homing("bench", "quality", "--photos", photos, "--background", others, "--out", out, *more)


@pytest.fixture(scope="module")
def out(photos: Path, others: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one bench."""
    folder = tmp_path_factory.mktemp("quality") / "out"
    (folder.parent / "said.txt").write_text(bench(photos, others, folder, *SETTINGS))
    return folder


@pytest.fixture(scope="module")
def rows(out: Path) -> dict[str, dict]:
    """Its rows by the names of the releases."""
    return {row["release"]: row for row in json.loads((out / "results.json").read_text())["rows"]}


@pytest.fixture(scope="module")
def lines(out: Path) -> list[dict[str, str]]:
    """What it says of each photo."""
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
            qualities.append(measure(before.view(), after.view()))
            assert float(line["psnr"]) == pytest.approx(qualities[-1].psnr, abs=1e-3)
            assert float(line["ssim"]) == pytest.approx(qualities[-1].ssim, abs=1e-4)
            assert float(line["linf"]) == pytest.approx(qualities[-1].linf)
        assert (row["activated"], row["photos"]) == (len(qualities), len(PHOTOS))
        for name in ("psnr", "ssim", "linf"):
            values = [getattr(quality, name) for quality in qualities]
            assert row[name] == (pytest.approx([fmean(values), pstdev(values)], abs=1e-4) if values else None)


def test_the_stronger_the_nearer_to_the_code(out: Path, photos: Path, rows: dict, extractor, codebook) -> None:
    for release, row in rows.items():
        originals, moved = (
            describe(extractor, [Photo.load(path).view() for path in paths])
            for paths in (
                [photos / name for name in PHOTOS],
                [released(out, photos, release, name) for name in PHOTOS],
            )
        )
        distances = (moved - codebook.reconstruct(originals)).norm(dim=1)
        assert row["distance"][0] == pytest.approx(float(distances.mean()), abs=1e-3)
    assert [row["distance"][0] for row in rows.values()] == sorted(
        (row["distance"][0] for row in rows.values()), reverse=True
    )
    _, gentle, own, strong = (row["psnr"] and row["psnr"][0] for row in rows.values())
    assert gentle >= 46 > own >= 43.8 > 36 > strong >= 34
    assert [row["own"] for row in rows.values()] == [True, False, True, False]


def test_copies_that_came_home_add_up(rows: dict, lines: list) -> None:
    for release, row in rows.items():
        mine = [int(line["copies_home"]) for line in lines if line["recipe"] == release]
        assert row["recall"] == pytest.approx(sum(mine) / (len(mine) * len(PAPER)))
        assert row["interval"][0] <= row["recall"] <= row["interval"][1]
        assert 0 < row["average_precision"] <= 1


def test_people_see_the_papers_figures_beside(out: Path) -> None:
    quality, trade_off = ((out / f"{name}.md").read_text() for name in ("quality", "trade-off"))
    assert quality.count("| paper-fast |") == 1
    assert "43.8 ± 2.2 | 0.98 ± 0.01 | 14.5 ± 1.2" in quality
    assert all(trade_off.count(f"| {release} |") == 1 for release in RELEASES)
    assert "×2.0" in trade_off
    shown = (out.parent / "said.txt").read_text()
    assert all(release in shown for release in RELEASES)
    report = (out / "report.html").read_text()
    assert len(re.findall("<img ", report)) == 2 * 4
    assert (out / "trade-off.svg").is_file()


def test_another_run_makes_nothing_again(
    out: Path, photos: Path, others: Path, rows: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("releasing.activate", "copies.edited_copies"):
        monkeypatch.setattr(f"homing.evaluation.protocol.{name}", lambda *_, **__: iter(()))
    said = json.loads(bench(photos, others, out, *SETTINGS, "--json"))
    assert {row["release"]: row for row in said["rows"]} == rows


def test_strengths_may_be_the_papers_alphas(photos: Path, others: Path, tmp_path: Path) -> None:
    settings = ("--strangers", 3, "--recipes", "paper-fast", "--alphas", 4, "--limit", 1, "--json")
    said = json.loads(bench(photos, others, tmp_path / "out", *settings))
    psnrs = {row["release"]: row["psnr"] for row in said["rows"]}
    assert set(psnrs) == {"passive", "paper-fast", "paper-fast-alpha-4"}
    assert psnrs["paper-fast"][0] > psnrs["paper-fast-alpha-4"][0]


def test_a_strength_that_is_the_recipes_own_is_not_done_twice() -> None:
    paper = RECIPES["paper"]
    assert at_strength(paper, JND(psnr=43.8)) is paper
    assert at_strength(paper, JND(psnr=40)).name == "paper-40dB"
    assert at_strength(paper, JND(alpha=3)).name == "paper-alpha-3"
    assert at_strength(paper, JND(alpha=3)).steps == paper.steps


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--psnrs", "40,strong"], "psnrs are numbers with commas between, got '40,strong'"),
        (["--alphas", ""], "alphas are numbers with commas between, got ''"),
        (["--psnrs", "40", "--alphas", "3"], "got both"),
        (["--psnrs", "40,10"], "psnr must lie between 20 and 80 dB, got 10"),
        (["--alphas", "nan"], "alpha must lie between 0 and 100, got nan"),
        (["--recipes", "papper"], "unknown recipe 'papper'; did you mean 'paper'?"),
        (["--recipes", "passive,paper"], "passive has no strength to vary"),
        (["--probes", "0"], "got 0 and 4"),
        (["--pictures", "-1"], "got 1 and -1"),
    ],
)
def test_a_wrong_call_gets_one_line(photos: Path, others: Path, tmp_path: Path, more: list[str], line: str) -> None:
    with pytest.raises(HomingError) as raised:
        bench(photos, others, tmp_path / "out", *more)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()

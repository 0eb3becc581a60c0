"""Budgets and LPIPS from the command line."""

import json
from pathlib import Path

import pytest
from tests.bench.helpers import homing, skimage_photos

from homing.errors import HomingError


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    homing("init", tmp_path / "c.homing")
    return skimage_photos(tmp_path / "photos", ("chelsea.png",)) / "chelsea.png"


def activate(cat: Path, out: str, *options: object) -> dict:
    folder = cat.parents[1]
    output = homing(
        "activate", folder / "c.homing", cat, "--out", folder / out, "--recipe", "paper-fast", *options, "--json"
    )
    (outcome,) = json.loads(output)
    assert outcome["state"] == "activated", outcome
    return outcome


def test_budget_by_name_and_strength(cat: Path) -> None:
    linf = activate(cat, "linf", "--budget", "linf", "--alpha", 4)
    assert linf["linf"] == 4
    assert 36 < linf["psnr"] < 39  # most pixels are at their bound
    used, printed = (activate(cat, name, "--budget", name) for name in ("jnd", "jnd-printed"))
    assert used["psnr"] == pytest.approx(printed["psnr"], abs=0.2) == pytest.approx(43.8, abs=0.2)
    assert used["released"] != printed["released"]
    assert Path(used["released"]).read_bytes() != Path(printed["released"]).read_bytes()
    assert Path(used["released"]).read_bytes() == Path(activate(cat, "none")["released"]).read_bytes()


def test_linf_psnr_is_rounded_to_a_whole_bound(cat: Path) -> None:
    """With nearly all pixels at the bound, PSNR is 48.1 dB for 1/255, 42.1 for 2/255 and 38.6 for 3/255."""
    assert 40 <= activate(cat, "linf", "--budget", "linf", "--psnr", 40)["psnr"] < 43


def test_a_wrong_budget_is_one_error_line(cat: Path) -> None:
    with pytest.raises(HomingError, match="unknown budget 'jdn'; did you mean 'jnd'"):
        activate(cat, "wrong", "--budget", "jdn")
    with pytest.raises(HomingError, match="either psnr or alpha"):
        activate(cat, "wrong", "--psnr", 40, "--alpha", 3)


def test_compare_measures_lpips(cat: Path, torch_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(torch_home))
    activated = activate(cat, "activated")["released"]
    assert 0 < json.loads(homing("compare", cat, activated, "--lpips", "--json"))["lpips"] < 1
    assert "LPIPS 0.0000" in homing("compare", cat, cat, "--lpips")
    assert "lpips" not in json.loads(homing("compare", cat, activated, "--json"))

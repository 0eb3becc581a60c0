"""The options --edits and --surroundings of the benches."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.bench.helpers import homing, skimage_photos

from homing.bench.benches.detection import DetectionSettings
from homing.bench.benches.retrieval import RetrievalSettings
from homing.bench.data import ReleasedPhoto, describe_copies
from homing.edits import GENERATED, PAPER, WILD, Surroundings, parse
from homing.errors import HomingError


def settings(**values: object) -> RetrievalSettings:
    return RetrievalSettings(photos=Path("photos"), out=Path("out"), **values)


@pytest.mark.slow
def test_all_edits_have_a_table_and_a_mean_per_set(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    others = skimage_photos(tmp_path / "others", ("astronaut.png", "coffee.png"))
    command = ("bench", "retrieval", "--photos", photos, "--limit", 2, "--out", tmp_path / "out", "--probes", "exact")
    output = homing(
        *command, "--recipes", "passive", "--distractors", 50, "--edits", "all", "--surroundings", others, code=0
    )
    assert "mean, paper" in output and "mean, wild" in output
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    (row,) = results["rows"]
    labels = [edit.label for edit in (*PAPER, *WILD)]
    assert results["settings"]["edits"] == labels == list(row["recall"])
    assert results["settings"]["surroundings"] == str(others)
    for name, edits in (("paper", PAPER), ("wild", WILD)):
        expected = np.mean([row["recall"][edit.label] for edit in edits])
        assert row["sets"][name]["mean"] == pytest.approx(expected)
        low, high = row["sets"][name]["interval"]
        assert low <= expected <= high
    wild = (tmp_path / "out" / "table_wild.md").read_text()
    assert all(edit.label in wild for edit in WILD) and "blur-2.0" not in wild and "SSCD" not in wild
    assert "edits that people make" in wild
    details = (tmp_path / "out" / "details.md").read_text()
    assert "mean, paper" in details and "mean, wild" in details and "SSCD" not in details
    assert "blur-2.0" in (tmp_path / "out" / "table.md").read_text()


def test_sets_of_edits_are_read() -> None:
    option = RetrievalSettings.__dataclass_fields__["edits"].metadata["option"]
    assert option.values("--edits", "wild") == list(WILD)
    assert option.values("--edits", "all") == [*PAPER, *WILD]
    assert option.values("--edits", "jpeg-50, page-20") == [parse("jpeg-50"), parse("page-20")]
    assert settings(edits=option.values("--edits", "paper,wild,jpeg-50")).labels == [
        edit.label for edit in (*PAPER, *WILD)
    ]
    with pytest.raises(HomingError, match="unknown edit 'wide'"):
        option.values("--edits", "wide")
    assert settings().edits == PAPER
    assert DetectionSettings(photos=Path("a"), out=Path("b"), negatives=Path("c")).labels == ["random"]


def test_surroundings_must_be_photos(photos: Path, tmp_path: Path) -> None:
    assert settings().pictures == GENERATED
    assert len(settings(surroundings=photos).pictures.files) == 4
    with pytest.raises(HomingError, match="no photos in folder"):
        _ = settings(surroundings=tmp_path).pictures
    with pytest.raises(HomingError, match="missing"):
        _ = settings(surroundings=tmp_path / "missing").pictures


def test_copies_with_other_surroundings_are_described_anew(extractor, photos: Path, tmp_path: Path) -> None:
    Image.new("RGB", (200, 200), "white").save(tmp_path / "white.png")
    files = [ReleasedPhoto("flower.jpg", photos / "flower.jpg", 0)]
    white = Surroundings((tmp_path / "white.png",))

    def describe(*labels: str, around: Surroundings) -> np.ndarray:
        edits = [parse(label) for label in labels]
        return np.array(describe_copies(extractor, files, edits, tmp_path, lambda: None, surroundings=around))

    generated, given = (describe("pasted-30", around=around) for around in (GENERATED, white))
    assert not np.allclose(generated, given)
    assert np.array_equal(describe("identity", around=GENERATED), describe("identity", around=white))
    assert len(list(tmp_path.glob("copies-*.npy"))) == 3

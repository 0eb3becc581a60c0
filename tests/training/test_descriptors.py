"""Training a network, slowly, on a few photos."""

import json
import shutil
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from homing import extractors
from homing.errors import HomingError
from homing.training.curves import Point
from homing.training.descriptors import Trainer
from homing.training.run import Run
from homing.training.settings import EDITS, Settings
from homing.training.squares import Squares, squares_of
from homing.training.starting import starting_network

CPU = torch.device("cpu")
TINY = Settings(training_size=64, size=64, dim=32, pairs=16, epochs=4, cells=8, koleo=0.1, mixup=0.2)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 80 small photos: parts of real ones."""
    folder = tmp_path_factory.mktemp("few")
    rng = np.random.default_rng(0)
    sources = {
        "skimage.data": ("chelsea.png", "astronaut.png", "coffee.png"),
        "sklearn.datasets.images": ("china.jpg",),
    }
    for package, names in sources.items():
        for name in names:
            with Image.open(BytesIO(files(package).joinpath(name).read_bytes())) as opened:
                image = opened.convert("RGB")
            for number in range(20):
                left, top = rng.integers((image.width - 100, image.height - 100))
                image.crop((left, top, left + 100, top + 100)).save(folder / f"{name[:-4]}-{number:02d}.png")
    return folder


@pytest.fixture(scope="module")
def squares(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Squares:
    return squares_of(sorted(few.iterdir()), 64, tmp_path_factory.mktemp("squares"), lambda: None)


def train(run: Run, out: Path) -> list[Point]:
    points: list[Point] = []
    run.train(out, lambda: None, points.append)
    return points


def test_a_network_learns_and_can_be_used(squares: Squares, tmp_path: Path) -> None:
    settings = Settings(training_size=64, size=64, dim=32, pairs=24, epochs=16)
    run = Run(tmp_path, squares, settings, CPU)
    before = run.trainer.recall()
    points = train(run, tmp_path / "net.safetensors")
    assert points[-1].step == run.trainer.steps == 48
    assert points[-1].loss < 0.7 * points[0].loss
    assert points[-1].recall >= before
    extractor = extractors.load(str(tmp_path / "net.safetensors"), device="cpu")
    assert (extractor.dim, extractor.size) == (32, 64)
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["extractor_fingerprint"] == extractor.fingerprint
    assert record["data_fingerprint"] == squares.fingerprint
    assert record["photos"] == 80 and record["settings"]["temperature"] == 0.1
    assert [point["step"] for point in record["curve"]] == [point.step for point in points]
    with Image.open(tmp_path / "curves.png") as picture:
        assert min(picture.size) > 200


class PowerCutError(Exception): ...


def test_an_interrupted_run_ends_as_if_it_had_not_been(squares: Squares, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    train(Run(whole, squares, TINY, CPU), whole / "net.safetensors")

    def kill(point: Point) -> None:
        if point.step == 7:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        Run(cut, squares, TINY, CPU).train(cut / "net.safetensors", lambda: None, kill)
    assert not (cut / "net.safetensors").exists()
    again = Run(cut, squares, TINY, CPU)
    assert again.trainer.step == 7
    train(again, cut / "net.safetensors")
    assert (cut / "net.safetensors").read_bytes() == (whole / "net.safetensors").read_bytes()
    assert [point.step for point in again.curve] == list(range(1, again.trainer.steps + 1))


def test_a_run_of_other_settings_or_with_damage_is_refused(squares: Squares, tmp_path: Path) -> None:
    short = Settings(training_size=64, size=64, dim=32, pairs=16, epochs=0.25)
    train(Run(tmp_path, squares, short, CPU), tmp_path / "net.safetensors")
    with pytest.raises(HomingError, match="other settings or photos"):
        Run(tmp_path, squares, TINY, CPU)
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(HomingError, match="damaged"):
        Run(tmp_path, squares, short, CPU)


def test_another_seed_gives_other_batches_and_the_same_seed_the_same(squares: Squares) -> None:
    first, same, other = (
        float(next(Trainer(squares, Settings(training_size=64, size=64, dim=16, pairs=8, seed=seed), CPU).run()))
        for seed in (1, 1, 2)
    )
    assert first == same != other


def test_a_loss_that_is_no_number_stops_the_run(squares: Squares, tmp_path: Path) -> None:
    wild = Settings(training_size=64, size=64, dim=16, pairs=8, epochs=2, rate=1e30)
    with pytest.raises(HomingError, match="lower --rate"):
        train(Run(tmp_path, squares, wild, CPU), tmp_path / "net.safetensors")


def test_training_goes_on_from_a_network_trained_before(squares: Squares, tmp_path: Path) -> None:
    short = Settings(training_size=64, size=64, dim=32, pairs=16, epochs=0.25)
    out = tmp_path / "net.safetensors"
    train(Run(tmp_path, squares, short, CPU), out)
    network, design = starting_network(Settings(init=str(out), dim=32, size=96, training_size=64))
    assert design.size == 96
    images = torch.rand(2, 3, 64, 64)
    extractor = extractors.load(str(out), device="cpu")
    assert torch.allclose(network.eval()((images - 127 / 255) / (128 / 255)), extractor.features(images), atol=1e-4)
    with pytest.raises(HomingError, match="32-d"):
        starting_network(Settings(init=str(out), dim=64))


@pytest.mark.parametrize(
    ("init", "says"),
    [
        ("imagenet-lite1", "did you mean 'imagenet-lite0'"),
        ("missing.safetensors", "cannot read the network missing.safetensors"),
        ("timm:resnt50", "unknown timm model"),
    ],
)
def test_a_start_that_is_not_there(init: str, says: str) -> None:
    with pytest.raises(HomingError, match=says):
        starting_network(Settings(init=init))


@pytest.mark.parametrize(
    "wrong",
    [
        {"dim": 0},
        {"temperature": 0.0},
        {"epochs": -1},
        {"pairs": 1},
        {"size": 100},
        {"training_size": 16},
        {"koleo": -1},
        {"mixup": 1.5},
        {"rate": float("nan")},
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(HomingError, match=next(iter(wrong)).split("_")[0]):
        Settings(**wrong)


def test_every_kind_of_edit_is_taught() -> None:
    from homing.edits.differentiable import TWINS

    assert set(TWINS) - set(EDITS) == {"identity"}


def test_squares_are_made_once_and_bad_photos_left_out(few: Path, tmp_path: Path) -> None:
    photos = [*sorted(few.iterdir())[:5], tmp_path / "bad.jpg"]
    photos[-1].write_text("hello")
    shutil.copy(photos[0], tmp_path / "same.png")
    seen: list[int] = []
    first = squares_of(photos, 64, tmp_path, lambda: seen.append(1))
    assert (len(first), len(first.failures), len(seen)) == (5, 1, 6)
    assert "bad.jpg" in first.failures[0]
    again = squares_of(photos, 64, tmp_path, lambda: seen.append(1))
    assert len(seen) == 6 and np.array_equal(again.pixels, first.pixels) and again.fingerprint == first.fingerprint
    fewer = squares_of(photos[1:3], 64, tmp_path, lambda: seen.append(1))
    assert (len(fewer), len(seen)) == (2, 8) and fewer.fingerprint != first.fingerprint
    with Image.open(photos[1]) as image:
        small = np.asarray(image.convert("RGB").resize((64, 64), Image.Resampling.BILINEAR), dtype=float)
    assert np.abs(fewer.pixels[0] - small).mean() < 1


def test_too_few_photos_are_refused(few: Path, tmp_path: Path) -> None:
    some = squares_of(sorted(few.iterdir())[:19], 64, tmp_path, lambda: None)
    with pytest.raises(HomingError, match="at least 20 photos"):
        Trainer(some, TINY, CPU)

"""HiDDeN, trained on a few photos."""

import hashlib
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.bench.helpers import homing, small_photos
from torch import Tensor

from homing.edits import Views, parse
from homing.errors import HomingError
from homing.extractors import describe_images
from homing.imaging import to_image, to_pixels
from homing.perception import JND, measure
from homing.photo import Photo
from homing.training.data import PhotoArray, load_photo_array
from homing.training.run import CurvePoint, Run, lock_folder
from homing.training.settings import HiddenSettings
from homing.watermarks import hidden
from homing.watermarks.base import EDITS, identifier, mark, random_edit
from homing.watermarks.hidden import BUNDLED, HiddenConfig, HiddenNetwork, HiddenTrainer, HiddenWatermark

CPU = torch.device("cpu")
TINY = HiddenSettings(bits=2, size=32, width=8, batch=16, epochs=2, psnr=20.0)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> PhotoArray:
    folder = tmp_path_factory.mktemp("squares")
    photos = small_photos(folder / "photos", [str(number) for number in range(40)], seed=3)
    return load_photo_array(sorted(photos.iterdir()), 32, folder, lambda: None)


def train(folder: Path, trainer: HiddenTrainer) -> float:
    folder.mkdir(exist_ok=True)
    return Run(folder, trainer).train(folder / "net.safetensors", lambda: None, lambda _: None)


@pytest.mark.slow
def test_encoder_and_decoder_are_trained(squares: PhotoArray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A strong message without edits trains in seconds; with edits it takes a GPU and an hour.
    monkeypatch.setattr(hidden, "random_edit", lambda views, _: views)
    trainer = HiddenTrainer(squares, replace(TINY, bits=1, epochs=40, lr=0.01), CPU)
    points: list[CurvePoint] = []
    score = Run(tmp_path, trainer).train(tmp_path / "net.safetensors", lambda: None, points.append)
    assert points[-1].loss < 0.4 < 0.5 < points[0].loss
    assert score == points[-1].score > 0.7  # the written file equals the network in memory
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["bit_accuracy"] == score
    assert record["settings"]["bits"] == 1 and record["settings"]["photos"] == 40
    watermark = HiddenWatermark.load(tmp_path / "net.safetensors", CPU)
    photo = Photo.load(next(iter(sorted((squares_folder(squares) / "photos").iterdir()))))
    (marked,) = mark([photo], watermark=watermark, budget=JND(psnr=20.0))
    assert (marked.state, marked.reason) == ("marked", None)
    assert 20.0 <= marked.quality.psnr < 20.6


def squares_folder(squares: PhotoArray) -> Path:
    assert isinstance(squares.pixels, np.memmap)
    return Path(str(squares.pixels.filename)).parent


@pytest.mark.slow
def test_a_resumed_run_gives_the_result_of_an_uninterrupted_one(squares: PhotoArray, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(whole, HiddenTrainer(squares, TINY, CPU))
    cut.mkdir()
    first = Run(cut, HiddenTrainer(squares, TINY, CPU))
    assert first.trainer.steps == 4

    class PowerCutError(Exception): ...

    def cut_at_three() -> None:
        if first.trainer.step == 3:
            raise PowerCutError

    with pytest.raises(PowerCutError):
        first.train(cut / "net.safetensors", cut_at_three, lambda _: None)
    again = HiddenTrainer(squares, TINY, CPU)
    train(cut, again)
    assert (cut / "net.safetensors").read_bytes() == (whole / "net.safetensors").read_bytes()


def test_the_command_trains_and_reports(tmp_path: Path) -> None:
    photos = small_photos(tmp_path / "photos", [str(number) for number in range(20)], seed=4)
    out = tmp_path / "net.safetensors"
    tiny = ("--bits", 3, "--size", 32, "--width", 4, "--batch", 9, "--epochs", 1)
    with lock_folder(tmp_path / "net.run"), pytest.raises(HomingError, match=r"another process trains in .*net\.run"):
        homing("train", "hidden", photos, "--out", out, *tiny)
    output = homing("train", "hidden", photos, "--out", out, *tiny)
    assert "held-out bit accuracy" in output
    assert HiddenWatermark.load(out, CPU).decoder.dim == 3
    assert {"record.json", "curves.png", "checkpoint.pt"} <= {path.name for path in (tmp_path / "net.run").iterdir()}
    with pytest.raises(HomingError, match="exists; choose another --out"):
        homing("train", "hidden", photos, "--out", out, *tiny)


@pytest.mark.parametrize(
    ("bit_accuracy", "difficulty"),
    [(1.0, [0.2, 0.4, 0.8, 1, 1]), (0.6, [0, 0, 0, 2 / 3, 1])],  # high and low bit accuracy
)
def test_the_difficulty_rises_with_the_bit_accuracy_and_in_time(
    squares: PhotoArray, bit_accuracy: float, difficulty: list[float]
) -> None:
    trainer = HiddenTrainer(squares, replace(TINY, epochs=10), CPU)
    assert trainer.steps == 20
    seen = []
    for trainer.step in range(20):
        trainer._update_difficulty(torch.tensor(bit_accuracy))
        seen.append(float(trainer._difficulty))
    assert [seen[step - 1] for step in (1, 2, 4, 10, 12)] == pytest.approx(difficulty)
    assert seen == sorted(seen) and seen[-1] == 1


def test_a_pattern_is_scaled_to_a_psnr() -> None:
    images, patterns = torch.rand(2, 3, 32, 32) * 0.5 + 0.25, torch.randn(2, 3, 32, 32)
    for image, marked in zip(images, hidden._at_psnr(images, patterns, 40.0), strict=True):
        assert measure(image, marked).psnr == pytest.approx(40.0, abs=0.01)


def test_training_distributes_changes_like_a_release() -> None:
    image, pattern = torch.rand(3, 32, 32) * 0.5 + 0.25, torch.randn(3, 32, 32)
    change = (hidden._at_psnr(image[None], pattern[None], 40.0)[0] - image).flatten()
    released = (JND(psnr=40.0).pixel_bound(image) * pattern).flatten()
    assert torch.cosine_similarity(change, released, dim=0) > 0.9999


def test_edits_are_equally_frequent_and_differentiable() -> None:
    pixels = torch.rand(20, 3, 32, 32, requires_grad=True)
    copies = random_edit(Views(pixels, torch.ones(20)), np.random.default_rng(0))
    assert copies.pixels.shape == (20, 3, 32, 32)
    unchanged = (copies.pixels == pixels).flatten(1).all(dim=1)
    assert int(unchanged.sum()) == 20 // len(EDITS)  # identity's share
    copies.pixels.sum().backward()
    assert all(each.abs().sum() > 0 for each in pixels.grad)
    assert len(random_edit(Views(pixels[:3], torch.ones(3)), np.random.default_rng(0))) == 3


def test_gray_photos_stay_gray_and_any_size_is_supported() -> None:
    watermark = HiddenWatermark(*_network(), CPU)
    gray, color = torch.rand(1, 50, 70).expand(3, -1, -1), torch.rand(3, 90, 40)
    changes = watermark.changes([gray, color], torch.tensor([[True, False], [False, False]]), JND(psnr=40.0))
    assert [tuple(change.shape) for change in changes] == [(3, 50, 70), (3, 90, 40)]
    assert torch.equal(changes[0][0], changes[0][2])
    assert not torch.equal(changes[1][0], changes[1][2])
    assert describe_images(watermark.decoder, [gray, color]).shape == (2, 2)
    for change in changes:
        assert change.square().mean().sqrt().item() == pytest.approx(0.01)  # 40 dB


def _network() -> tuple[HiddenNetwork, HiddenConfig]:
    config = HiddenConfig(bits=2, size=32, width=8)
    return HiddenNetwork(config), config


def test_the_decoder_equals_the_network() -> None:
    network, config = _network()
    images: Tensor = torch.rand(4, 3, 32, 32)
    scores = HiddenWatermark(network, config, CPU).decoder(images)
    assert torch.equal(scores > 0, network.decode(images) > 0)


def test_the_bundled_networks_are_unchanged_and_read_their_messages(flower: Photo) -> None:
    data = files("homing.watermarks").joinpath(BUNDLED).read_bytes()
    assert hashlib.sha256(data).hexdigest() == "f0c01ee32a6773dba4f8d7ace8598aac49b0309b4230f50f51bddc29674d6993"
    watermark = HiddenWatermark.load(device=CPU)
    (marked,) = mark([flower], watermark=watermark, budget=JND(psnr=43.8))
    assert (marked.state, marked.reason) == ("marked", None) and marked.quality.psnr < 44
    copy = parse("jpeg-80")(to_image(Photo.decode(marked.data, "again").pixels()))
    bits = describe_images(watermark.decoder, [watermark.decoder.resize(to_pixels(copy))])[0] > 0
    assert (bits == identifier(flower.sha256, 20)).float().mean() >= 0.9


def test_invalid_network_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HomingError, match=r"no such file: .*homing train hidden"):
        HiddenWatermark.load(tmp_path / "missing.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"hello")
    with pytest.raises(HomingError, match="was not written by homing train hidden"):
        HiddenWatermark.load(tmp_path / "bad.safetensors")


@pytest.mark.parametrize("wrong", [{"bits": 0}, {"size": 40}, {"batch": 1}, {"psnr": 10.0}, {"width": 0}])
def test_invalid_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(HomingError, match=f"--{next(iter(wrong))} "):
        HiddenSettings(**wrong)

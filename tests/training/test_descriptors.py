"""Train a network on a few photos."""

import json
from dataclasses import asdict
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from homing import extractors
from homing.edits import KINDS
from homing.errors import HomingError
from homing.training.data import PhotoArray, load_photo_array
from homing.training.descriptors import DescriptorTrainer, initial_network
from homing.training.run import CurvePoint, Run, check_run
from homing.training.settings import COUNTS, EDITS, FAMILY_WEIGHTS, WEAK_EDITS, DescriptorSettings

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
TINY = DescriptorSettings(
    training_size=64, size=64, dim=32, pairs=16, epochs=6, cells=8, koleo=0.1, mixup=0.2, whiten=0.2
)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 80 small crops of real photos."""
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
def squares(few: Path, tmp_path_factory: pytest.TempPathFactory) -> PhotoArray:
    return load_photo_array(sorted(few.iterdir()), 64, tmp_path_factory.mktemp("squares"), lambda: None)


def train(run: Run, out: Path) -> list[CurvePoint]:
    points: list[CurvePoint] = []
    run.train(out, lambda: None, points.append)
    return points


def test_a_trained_network_loads_as_an_extractor(squares: PhotoArray, tmp_path: Path) -> None:
    settings = DescriptorSettings(training_size=64, size=64, dim=32, pairs=24, epochs=16)
    run = Run(tmp_path, DescriptorTrainer(squares, settings, CPU))
    points = train(run, tmp_path / "net.safetensors")
    assert points[-1].step == run.trainer.steps == 48
    assert len(points) == 16
    assert points[-1].loss < 0.8 * points[0].loss
    extractor = extractors.load(str(tmp_path / "net.safetensors"), device="cpu")
    assert (extractor.dim, extractor.size) == (32, 64)
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["extractor_fingerprint"] == extractor.fingerprint
    assert record["settings"]["data_fingerprint"] == squares.fingerprint
    assert record["settings"]["photos"] == 80 and record["settings"]["temperature"] == 0.1
    assert record["settings"]["edits"]["jpeg"] == list(EDITS["jpeg"])
    assert record["settings"]["family_weights"] == FAMILY_WEIGHTS and record["settings"]["edit_counts"] == list(COUNTS)
    assert record["settings"]["weak_edits"]["jpeg"] == list(WEAK_EDITS["jpeg"]) and record["rendered_by"]["homing"]
    assert record["recall"] == run.trainer.recall(extractor)  # of the written file, not of the network in memory
    assert [point["step"] for point in record["curve"]] == [point.step for point in points]
    with Image.open(tmp_path / "curves.png") as picture:
        assert min(picture.size) > 200


def test_the_written_network_differs_only_by_whitening(squares: PhotoArray, tmp_path: Path) -> None:
    heads, trunks = [], []
    for power in (0.0, 0.35):
        # All copies are blends, which whitening must ignore.
        settings = DescriptorSettings(training_size=64, size=64, dim=16, pairs=16, epochs=0.5, mixup=1, whiten=power)
        DescriptorTrainer(squares, settings, CPU).write(tmp_path / f"{power}.safetensors")
        weights = load_file(tmp_path / f"{power}.safetensors")
        heads.append(weights.pop("head.weight"))
        trunks.append({name: value for name, value in weights.items() if name != "head.bias"})
    assert all(torch.equal(value, trunks[1][name]) for name, value in trunks[0].items())
    assert not torch.allclose(heads[0], heads[1], atol=1e-2)


class PowerCutError(Exception): ...


def test_a_resumed_run_gives_the_result_of_an_uninterrupted_one(squares: PhotoArray, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    train(Run(whole, DescriptorTrainer(squares, TINY, CPU)), whole / "net.safetensors")

    first = Run(cut, DescriptorTrainer(squares, TINY, CPU))
    assert first.trainer.steps == 24

    def cut_at_nine() -> None:
        if first.trainer.step == 9:  # one step after the checkpoint, which is lost
            raise PowerCutError

    with pytest.raises(PowerCutError):
        first.train(cut / "net.safetensors", cut_at_nine, lambda _: None)
    assert not (cut / "net.safetensors").exists()
    again = Run(cut, DescriptorTrainer(squares, TINY, CPU))
    assert again.trainer.step == 8
    train(again, cut / "net.safetensors")
    assert (cut / "net.safetensors").read_bytes() == (whole / "net.safetensors").read_bytes()
    assert [point.step for point in again.curve] == list(range(2, 25, 2))


def test_resuming_with_other_settings_or_a_damaged_checkpoint_is_refused(squares: PhotoArray, tmp_path: Path) -> None:
    short = DescriptorSettings(training_size=64, size=64, dim=32, pairs=16, epochs=0.25)
    train(Run(tmp_path, DescriptorTrainer(squares, short, CPU)), tmp_path / "net.safetensors")
    for refuse in (
        lambda: Run(tmp_path, DescriptorTrainer(squares, TINY, CPU)),
        lambda: check_run(tmp_path, asdict(TINY)),
    ):
        with pytest.raises(HomingError, match="differs in cells, epochs, koleo, mixup, whiten;"):
            refuse()
    checkpoint = tmp_path / "checkpoint.pt"
    whole = checkpoint.read_bytes()
    torch.save(torch.zeros(3), tmp_path / "tensor.pt")
    for damage in (whole[:1000], b"", (tmp_path / "tensor.pt").read_bytes()):
        checkpoint.write_bytes(damage)
        with pytest.raises(HomingError, match="damaged"):
            Run(tmp_path, DescriptorTrainer(squares, short, CPU))


def first_loss(squares: PhotoArray, settings: DescriptorSettings) -> float:
    trainer = DescriptorTrainer(squares, settings, CPU)
    return float(trainer.loss(trainer.batches.pixels(0)).detach())


def test_another_seed_gives_other_batches_and_the_same_seed_the_same(squares: PhotoArray) -> None:
    first, same, other = (
        first_loss(squares, DescriptorSettings(training_size=64, size=64, dim=16, pairs=8, seed=seed))
        for seed in (1, 1, 2)
    )
    assert first == same != other


@pytest.mark.parametrize("steps", [1, 4])
def test_nan_weights_stop_the_run(squares: PhotoArray, tmp_path: Path, steps: int) -> None:
    settings = DescriptorSettings(training_size=64, size=64, dim=16, pairs=16, epochs=steps / 4)
    run = Run(tmp_path, DescriptorTrainer(squares, settings, CPU))

    def spoil() -> None:
        run.trainer.network.head.weight.data[0, 0] = float("nan")

    with pytest.raises(HomingError, match="a lower --lr"):
        run.train(tmp_path / "net.safetensors", spoil, lambda _: None)
    assert not (tmp_path / "net.safetensors").exists()


def test_a_run_stopped_after_its_last_step_is_finished_by_the_next(
    squares: PhotoArray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = DescriptorSettings(training_size=64, size=64, dim=32, pairs=16, epochs=0.5)
    folder = tmp_path / "net.run"
    folder.mkdir()
    with monkeypatch.context() as patch, pytest.raises(PowerCutError):
        patch.setattr(Run, "_record", lambda *_: (_ for _ in ()).throw(PowerCutError))
        train(Run(folder, DescriptorTrainer(squares, short, CPU)), tmp_path / "net.safetensors")
    assert not (tmp_path / "net.safetensors").exists()
    train(Run(folder, DescriptorTrainer(squares, short, CPU)), tmp_path / "net.safetensors")
    assert (folder / "record.json").is_file() and (tmp_path / "net.safetensors").is_file()


def test_training_starts_from_an_earlier_network(squares: PhotoArray, tmp_path: Path) -> None:
    short = DescriptorSettings(training_size=64, size=64, dim=32, pairs=16, epochs=0.25)
    out = tmp_path / "net.safetensors"
    train(Run(tmp_path, DescriptorTrainer(squares, short, CPU)), out)
    network, config = initial_network(DescriptorSettings(init=str(out), dim=32, size=96, training_size=64))
    assert config.size == 96
    images = torch.rand(2, 3, 64, 64)
    extractor = extractors.load(str(out), device="cpu")
    assert torch.allclose(network.eval()((images - 127 / 255) / (128 / 255)), extractor.features(images), atol=1e-4)
    with pytest.raises(HomingError, match="32-d"):
        initial_network(DescriptorSettings(init=str(out), dim=64))


@pytest.mark.parametrize(
    ("init", "says"),
    [
        ("imagenet-lite1", "did you mean 'imagenet-lite0'"),
        ("missing.safetensors", "cannot read the network missing.safetensors"),
        ("timm:resnt50", "unknown timm model"),
    ],
)
def test_a_missing_start_network_is_refused(init: str, says: str) -> None:
    with pytest.raises(HomingError, match=says):
        initial_network(DescriptorSettings(init=init))


@pytest.mark.parametrize(
    "wrong",
    [
        {"dim": 0},
        {"temperature": 0.0},
        {"epochs": -1},
        {"pairs": 1},
        {"size": 16},
        {"training_size": 100},
        {"epochs": float("inf")},
        {"seed": -1},
        {"koleo": -1},
        {"mixup": 1.5},
        {"weak_aug": -0.1},
        {"whiten": 0.6},
        {"lr": float("nan")},
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(HomingError, match=f"--{next(iter(wrong)).replace('_', '-')} "):
        DescriptorSettings(**wrong)


def test_every_kind_of_edit_is_trained_on() -> None:
    assert {name for name, kind in KINDS.items() if kind.views_function} - set(EDITS) == {"identity"}


def test_a_photo_array_is_cached_and_skips_bad_photos(few: Path, tmp_path: Path) -> None:
    photos = [*sorted(few.iterdir())[:5], tmp_path / "nowhere.jpg"]
    photos[-1].symlink_to(tmp_path / "missing.jpg")
    seen: list[int] = []
    first = load_photo_array(photos, 64, tmp_path, lambda: seen.append(1))
    assert (len(first), len(first.failures), len(seen)) == (5, 1, 6)
    assert "nowhere.jpg" in first.failures[0]
    again = load_photo_array(photos, 64, tmp_path, lambda: seen.append(1))
    assert len(seen) == 6 and np.array_equal(again.pixels, first.pixels) and again.fingerprint == first.fingerprint
    for damage in (tmp_path / "photos.json", tmp_path / "photos.npy"):
        for size in (50, 0):
            damage.write_bytes(damage.read_bytes()[:size])
            whole = load_photo_array(photos, 64, tmp_path, lambda: None)
            assert np.array_equal(whole.pixels, first.pixels)
    (tmp_path / "photos.npy").unlink()
    assert len(load_photo_array(photos, 64, tmp_path, lambda: None)) == 5
    fewer = load_photo_array(photos[1:3], 64, tmp_path, lambda: seen.append(1))
    assert (len(fewer), len(seen)) == (2, 8) and fewer.fingerprint != first.fingerprint
    with Image.open(photos[1]) as image:
        small = np.asarray(image.convert("RGB").resize((64, 64), Image.Resampling.BILINEAR), dtype=float)
    assert np.abs(fewer.pixels[0].transpose(1, 2, 0) - small).mean() < 1


def test_a_folder_that_cannot_be_written_gets_one_line(few: Path, tmp_path: Path) -> None:
    (tmp_path / "photos.npy").mkdir()
    with pytest.raises(HomingError, match="cannot write the photos to"):
        load_photo_array(sorted(few.iterdir()), 64, tmp_path, lambda: None)


@pytest.mark.parametrize("trunk", ["vit_tiny_patch16_224", "mobilenetv3_small_050"])
def test_a_trunk_without_feature_maps_is_refused(trunk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import timm

    # Weights cannot be downloaded in a test; everything else is real.
    monkeypatch.setattr(
        "homing.training.descriptors.pretrained",
        lambda name: timm.create_model(name, pretrained=False, num_classes=0),
    )
    with pytest.raises(HomingError, match="no feature maps"):
        initial_network(DescriptorSettings(init=f"timm:{trunk}"))
    network, config = initial_network(DescriptorSettings(init="timm:resnet10t", dim=16))
    assert config.trunk == "resnet10t" and network(torch.rand(2, 3, 64, 64)).shape == (2, 16)


def test_too_few_photos_are_refused(few: Path, tmp_path: Path) -> None:
    too_few = load_photo_array(sorted(few.iterdir())[:19], 64, tmp_path, lambda: None)
    with pytest.raises(HomingError, match="at least 20 photos"):
        DescriptorTrainer(too_few, TINY, CPU)

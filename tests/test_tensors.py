"""Batching by image size, as on a GPU, but tested on the CPU, which takes images one by one; and memory."""

import dataclasses
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from homing import _tensors
from homing._tensors import map_by_shape
from homing.activation import RECIPES, activate_batch
from homing.perception import BUDGETS
from homing.perception.quality import measure, measure_batch
from homing.photo import Photo

in_stacks_of_three = pytest.mark.usefixtures("three_per_stack")

DESCRIBING = """
import resource, torch
from homing import extractors
network, images = extractors.load("homing-1", device="cpu"), torch.rand(16, 3, 224, 224)
with torch.inference_mode():
    network(images)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        network(images)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture
def three_per_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks of at most three images, as on a GPU."""
    monkeypatch.setattr(_tensors, "_stack_size", lambda *_: 3)


@pytest.fixture
def two_sizes(photos: Path, tmp_path: Path) -> list[Photo]:
    """Photos of two alternating sizes, with several subsamplings and tables; one is gray, one coarse."""
    files = []
    for number, (name, settings) in enumerate(
        [
            ("flower.jpg", {"quality": 92, "subsampling": 2}),
            ("rocket.jpg", {"quality": 80, "subsampling": 0}),
            ("flower.jpg", {"quality": 85, "subsampling": 2}),
            ("camera.png", {"quality": 90}),
            ("flower.jpg", {"quality": 8, "subsampling": 2}),
        ]
    ):
        with Image.open(photos / name) as image:
            files.append(tmp_path / f"{number}.jpg")
            image.crop((0, 0, 300 - 40 * (number % 2), 240)).save(files[-1], **settings)
    return [Photo.load(file) for file in files]


@in_stacks_of_three
def test_results_keep_the_order_of_the_images() -> None:
    pictures = [torch.full((3, 4 + number % 2, 5), float(number)) for number in range(9)]
    more = [torch.tensor([[[10.0 * number]]]) for number in range(9)]
    sizes = []

    def work(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        sizes.append(len(first))
        return first.mean(dim=(1, 2, 3)) + second.flatten()

    assert [float(each) for each in map_by_shape(work, pictures, more)] == [11.0 * number for number in range(9)]
    assert sorted(sizes) == [1, 2, 3, 3]
    assert map_by_shape(work, [], []) == []


@in_stacks_of_three
def test_similar_sizes_are_padded_to_one_size() -> None:
    pictures = [torch.arange(3.0 * (5 + number) * 7).view(3, 5 + number, 7) for number in range(4)]
    rows = [torch.tensor([[[5.0 + number]]]) for number in range(4)]
    stacks = []

    def work(padded: torch.Tensor, heights: torch.Tensor) -> torch.Tensor:
        stacks.append(padded.shape)
        inside = torch.arange(padded.shape[2])[:, None] < heights
        return (padded * inside).sum(dim=(1, 2, 3))

    results = map_by_shape(work, pictures, rows, size_multiple=4)
    assert [float(each) for each in results] == [float(each.sum()) for each in pictures]
    assert stacks == [(3, 3, 7, 7), (1, 3, 8, 7)]
    assert len(map_by_shape(work, pictures, rows)) == 4 and stacks[2:] == [(1, 3, 5 + number, 7) for number in range(4)]


@in_stacks_of_three
@pytest.mark.parametrize("kind", BUDGETS.values(), ids=list(BUDGETS))
def test_pixel_bounds_are_those_of_each_photo(two_sizes: list[Photo], kind) -> None:
    budget, images = kind(psnr=43.8), [photo.pixels() for photo in two_sizes]
    for pixel_bound, image in zip(map_by_shape(budget.pixel_bounds, images), images, strict=True):
        torch.testing.assert_close(pixel_bound, budget.pixel_bound(image))


@in_stacks_of_three
def test_qualities_are_those_of_each_photo(two_sizes: list[Photo]) -> None:
    images = [photo.pixels() for photo in two_sizes]
    noisy = [(image + 0.02 * torch.randn(image.shape)).clamp(0, 1) for image in images]
    noisy[2] = images[2]
    for together, first, second in zip(measure_batch(images, noisy), images, noisy, strict=True):
        alone = measure(first, second)
        assert together.psnr == pytest.approx(alone.psnr, abs=1e-6)
        assert together.ssim == pytest.approx(alone.ssim, abs=1e-6)
        assert together.linf == alone.linf


def test_a_batch_gives_the_files_of_single_photos(
    two_sizes: list[Photo], extractor, codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = dataclasses.replace(RECIPES["homing-fast"], steps=1)
    settings = {"extractor": extractor, "codebook": codebook, "recipe": recipe}
    alone = [activate_batch([photo], **settings)[0] for photo in two_sizes]
    monkeypatch.setattr(_tensors, "_stack_size", lambda *_: 3)
    together = activate_batch(two_sizes, **settings)
    for one, other in zip(alone, together, strict=True):
        assert (one.state, one.reason) == (other.state, other.reason)
        assert one.quality.psnr == pytest.approx(other.quality.psnr, abs=0.02)
        assert one.sha256 == other.sha256
        before, after = (Photo.decode(each.data, "made").stored_pixels.astype(int) for each in (one, other))
        assert np.abs(before - after).mean() < 0.05
    assert any("finer quantization" in (each.reason or "") for each in together)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_a_network_on_a_cpu_reuses_its_memory() -> None:
    """Without tuning malloc, 16 photos need about 80,000 fresh pages of 4 kB, since layers return their memory."""
    done = subprocess.run([sys.executable, "-c", DESCRIBING], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30_000

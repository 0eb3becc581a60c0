"""Search for the strength that gives a PSNR, with pixels rounded to 8 bits."""

from typing import NamedTuple

import pytest
import torch

from homing.activation.strength import write_at_psnr
from homing.perception import measure


def run(search) -> "Rounded":
    """Run a search, executing each request at once."""
    answer = None
    while True:
        try:
            answer = search.send(answer)
        except StopIteration as end:
            return end.value


class Rounded(NamedTuple):
    """Change that remains after writing."""

    strength: float
    psnr: float


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("wanted", [43.8, 46.0, 52.0])
def test_a_nearly_uniform_change_meets_the_psnr(wanted: float, known: bool) -> None:
    """As with L∞: a weaker change is rounded to nothing, a stronger one changes every pixel by one level."""
    pixels = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0)) * 0.5 + 0.25
    pixels = (255 * pixels).round() / 255
    pixel_bound = 10 ** (-wanted / 20) / 0.8
    change = pixel_bound * torch.linspace(0.7, 0.95, pixels.numel()).reshape(pixels.shape)

    def write(strength: float) -> Rounded:
        return Rounded(strength, measure(pixels, (255 * (pixels + strength * change)).round() / 255).psnr)

    size = float(change.square().mean().sqrt()) if known else None
    assert wanted <= run(write_at_psnr(write, wanted, size)).psnr < wanted + 4


def test_a_varied_change_takes_two_files() -> None:
    """As with JND: rounding changes the result slightly, so the first guess is close."""
    pixels = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0)) * 0.5 + 0.25
    pixels = (255 * pixels).round() / 255
    change = 0.01 * torch.randn(pixels.shape, generator=torch.Generator().manual_seed(1))
    files = []

    def write(strength: float) -> Rounded:
        files.append(Rounded(strength, measure(pixels, (255 * (pixels + strength * change)).round() / 255).psnr))
        return files[-1]

    assert 43.8 <= run(write_at_psnr(write, 43.8, float(change.square().mean().sqrt()))).psnr <= 43.9
    assert len(files) <= 2


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_a_predicted_psnr_takes_one_file(share: float) -> None:
    """Even if the first guess is wrong by nearly ten dB, or the change has few pixels."""
    pixels = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0)) * 0.5 + 0.25
    pixels = (255 * pixels).round() / 255
    change = 0.01 * torch.randn(pixels.shape, generator=torch.Generator().manual_seed(1))
    change *= torch.rand(pixels.shape, generator=torch.Generator().manual_seed(2)) < share
    files = []

    def predict(strength: float) -> float:
        return measure(pixels, (255 * (pixels + strength * change)).round() / 255).psnr

    def write(strength: float) -> Rounded:
        files.append(Rounded(strength, predict(strength)))
        return files[-1]

    size = 3 * float(change.square().mean().sqrt())
    assert 43.8 <= run(write_at_psnr(write, 43.8, size, predict)).psnr <= 43.9
    assert len(files) == 1

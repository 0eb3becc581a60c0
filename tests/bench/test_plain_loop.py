"""The plain loop: compared with the paper's formulas and with the loop of homing."""

from dataclasses import replace
from statistics import fmean

import pytest
import torch

from homing.activation import RECIPES
from homing.activation.optimize import optimize
from homing.bench.benches._speed_loop import plain
from homing.extractors import describe_images
from homing.objectives import objective_for
from homing.perception import JND, measure
from homing.photo import Photo

PAPER = RECIPES["paper"]


@pytest.fixture(scope="module")
def images(photos) -> list[torch.Tensor]:
    """Crops of three photos, of three sizes, the last one gray."""
    names = ("flower.jpg", "chelsea.png", "camera.png")
    wholes = [Photo.load(photos / name).pixels() for name in names]
    return [whole[:, : 200 + 20 * number, 40:300].clone() for number, whole in enumerate(wholes)]


def run_loop(loop, images, extractor, codebook, recipe) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The changes, and the objective of the changed images."""
    objective = objective_for(codebook, describe_images(extractor, images))
    changes = loop(images, extractor=extractor, objective=objective, recipe=recipe)
    return changes, objective(
        describe_images(extractor, [pixels + each for pixels, each in zip(images, changes, strict=True)])
    )


def test_three_steps_equal_the_formulas(images, extractor, codebook) -> None:
    pixels, recipe = images[0], replace(PAPER, steps=3, lr=0.5, image_weight=2.0)
    target, given = codebook.reconstruct(describe_images(extractor, [pixels])), extractor.unfolded()
    pixel_bound = recipe.budget.pixel_bound(pixels)
    delta, mean, square = (torch.zeros_like(pixels) for _ in range(3))
    for step in (1, 2, 3):
        delta.requires_grad_()
        change = pixel_bound * torch.tanh(delta)
        image = torch.nn.functional.interpolate(
            (pixels + change)[None], (extractor.size,) * 2, mode="bilinear", antialias=True
        )
        loss = (given(image) - target).square().sum() + 2.0 * change.square().mean()
        (gradient,) = torch.autograd.grad(loss, delta)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        step_size = 0.5 / (1 - 0.9**step)
        delta = delta.detach() - step_size * mean / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    (ours,), _ = run_loop(plain, [pixels], extractor, codebook, recipe)
    close = torch.isclose(ours, pixel_bound * torch.tanh(delta), atol=1e-4)
    assert close.float().mean() > 0.99  # tiny gradients depend on rounding


def test_every_photo_gets_nearer_within_its_pixel_bound(images, extractor, codebook) -> None:
    recipe = replace(PAPER, steps=3)
    before = objective_for(codebook, describe_images(extractor, images))(describe_images(extractor, images))
    changes, after = run_loop(plain, images, extractor, codebook, recipe)
    assert (after < 0.9 * before).all()
    for pixels, change in zip(images, changes, strict=True):
        assert change.shape == pixels.shape and change.device == pixels.device
        assert change.abs().max() > 0
        assert (change.abs() <= recipe.budget.pixel_bound(pixels) + 1e-7).all()
    assert torch.equal(changes[2][0], changes[2][1])  # gray stays gray


def test_the_change_has_the_size_of_the_photo(extractor, codebook) -> None:
    pixels = torch.rand(3, 20, 2500)
    (change,), _ = run_loop(plain, [pixels], extractor, codebook, replace(PAPER, steps=1))
    assert change.shape == pixels.shape


@pytest.mark.slow
def test_the_loop_of_homing_reaches_the_same_objective(images, extractor, codebook) -> None:
    before = objective_for(codebook, describe_images(extractor, images))(describe_images(extractor, images))
    ours, theirs = (before - run_loop(loop, images, extractor, codebook, PAPER)[1] for loop in (optimize, plain))
    torch.testing.assert_close(ours, theirs, rtol=0.15, atol=0.0)


def test_alpha_three_gives_the_papers_quality(photos, extractor, codebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's 43.8 ± 2.2 dB, SSIM 0.98 and L∞ 14.5, in its setup: 1024 pixels read at 288, not anti-aliased."""

    def sampled(images: torch.Tensor, size: int) -> torch.Tensor:
        return torch.nn.functional.interpolate(images, (size, size), mode="bilinear", align_corners=False)

    monkeypatch.setattr("homing.extractors.base._resize", sampled)
    monkeypatch.setattr(extractor, "size", 180)  # 640 · 288 / 1024
    images = [Photo.load(photos / name).pixels() for name in ("flower.jpg", "rocket.jpg")]
    changes, _ = run_loop(plain, images, extractor, codebook, replace(PAPER, budget=JND(alpha=3.0)))
    costs = [measure(pixels, (pixels + change).clamp(0, 1)) for pixels, change in zip(images, changes, strict=True)]
    assert fmean(cost.psnr for cost in costs) == pytest.approx(43.8, abs=2.2)
    assert fmean(cost.ssim for cost in costs) == pytest.approx(0.98, abs=0.015)
    assert fmean(cost.linf for cost in costs) == pytest.approx(14.5, abs=4)

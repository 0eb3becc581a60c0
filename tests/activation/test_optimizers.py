"""Optimizers of a change."""

import pytest
import torch

from homing.activation.optimize import MOMENTUM, NormalizedMomentum, TanhAdam, make_optimizer
from homing.activation.recipe import Recipe
from homing.errors import HomingError
from homing.perception import JND
from homing.perception.budgets import TYPICAL_SHARE


@pytest.fixture
def pixel_bounds() -> torch.Tensor:
    return 0.01 + 0.05 * torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def rms(changes: torch.Tensor) -> torch.Tensor:
    return changes.square().mean(dim=(1, 2, 3)).sqrt()


def test_tanh_adam_is_adam_on_the_papers_formula(pixel_bounds: torch.Tensor) -> None:
    """Compared with autograd on I_o + bound · tanh δ, a constant gradient, and λ times the squares."""
    gradient = torch.randn(pixel_bounds.shape, generator=torch.Generator().manual_seed(1)) / 1000
    delta = torch.zeros_like(pixel_bounds, requires_grad=True)
    adam = torch.optim.Adam([delta], lr=0.5)
    ours = TanhAdam(pixel_bounds, Recipe(name="r", lr=0.5, image_weight=2.0))
    for _ in range(4):
        change = pixel_bounds * torch.tanh(delta)
        adam.zero_grad()
        ((change * gradient).sum() + 2.0 * change.square().mean(dim=(1, 2, 3)).sum()).backward()
        adam.step()
        ours.step(gradient)
    torch.testing.assert_close(ours.result(), torch.tanh(delta).detach())


@pytest.mark.parametrize("grad_power", [0.5, 0.7])
def test_normalized_momentum_takes_steps_of_rms_lr_along_a_power_of_the_gradient(
    pixel_bounds: torch.Tensor, grad_power: float
) -> None:
    gradient = torch.randn(pixel_bounds.shape, generator=torch.Generator().manual_seed(1))
    target_rms = TYPICAL_SHARE * rms(pixel_bounds)
    optimizer = NormalizedMomentum(pixel_bounds, Recipe(name="r", constraint="image", lr=0.2, grad_power=grad_power))
    optimizer.step(gradient)
    torch.testing.assert_close(rms(pixel_bounds * optimizer.pattern), 0.2 * target_rms)
    ratio = optimizer.pattern[0].flatten().abs() / gradient[0].flatten().abs().pow(grad_power)
    torch.testing.assert_close(ratio, ratio[0].expand_as(ratio), rtol=1e-3, atol=0)
    assert ((optimizer.pattern * gradient) < 0).all()
    optimizer.step(gradient)
    torch.testing.assert_close(rms(pixel_bounds * optimizer.pattern), (0.2 + 0.2 * (1 + MOMENTUM)) * target_rms)


def test_step_sizes_decay_to_zero(pixel_bounds: torch.Tensor) -> None:
    """With three steps the lr falls by a third from step to step; momentum keeps earlier steps."""
    gradient = torch.randn(pixel_bounds.shape, generator=torch.Generator().manual_seed(1))
    optimizer = make_optimizer(
        Recipe(name="r", summary="", constraint="image", steps=3, lr=0.15, lr_decay=True), pixel_bounds
    )
    step_sizes, before = [], torch.zeros_like(pixel_bounds)
    for _ in range(3):
        optimizer.step(gradient)
        step_sizes.append(rms(pixel_bounds * (optimizer.pattern - before)) / (TYPICAL_SHARE * rms(pixel_bounds)))
        before = optimizer.pattern.clone()
    expected = [0.15, 0.1 + MOMENTUM * 0.15, 0.05 + MOMENTUM * (0.1 + MOMENTUM * 0.15)]
    for step_size, expected_size in zip(step_sizes, expected, strict=True):
        torch.testing.assert_close(step_size, torch.full_like(step_size, expected_size), rtol=1e-3, atol=0)


def test_normalized_momentum_never_exceeds_the_target_rms_and_ends_there(pixel_bounds: torch.Tensor) -> None:
    target_rms = TYPICAL_SHARE * rms(pixel_bounds)
    optimizer = NormalizedMomentum(pixel_bounds, Recipe(name="r", constraint="image", lr=0.3))
    for seed in range(5):
        optimizer.step(torch.randn(pixel_bounds.shape, generator=torch.Generator().manual_seed(seed)))
        assert (rms(pixel_bounds * optimizer.pattern) <= target_rms * (1 + 1e-5)).all()
    torch.testing.assert_close(rms(pixel_bounds * optimizer.result()), target_rms)


def test_without_a_gradient_nothing_changes(pixel_bounds: torch.Tensor) -> None:
    for kind in (NormalizedMomentum, TanhAdam):
        optimizer = kind(pixel_bounds, Recipe(name="r", lr=0.3))
        optimizer.step(torch.zeros_like(pixel_bounds))
        assert not optimizer.result().any()


@pytest.mark.parametrize(("budget", "within"), [(JND(psnr=43.8), False), (JND(alpha=3.0), True)])
def test_alpha_bounds_every_pixel(pixel_bounds: torch.Tensor, budget: JND, within: bool) -> None:
    optimizer = make_optimizer(Recipe(name="r", summary="", constraint="image", lr=0.5, budget=budget), pixel_bounds)
    for seed in range(3):
        optimizer.step(torch.randn(pixel_bounds.shape, generator=torch.Generator().manual_seed(seed)))
    assert (optimizer.result().abs().max() <= 1) == within


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"eot_samples": 1.5},
        {"lr": 0.0},
        {"image_weight": -1.0},
        {"constraint": "image", "grad_power": 1.1},
        {"grad_power": 1.0},
        {"lr_decay": True},
        {"constraint": "loose"},
        {"constraint": "image", "image_weight": 2.0},
        {"objective": "cell"},
    ],
)
def test_invalid_recipes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(HomingError):
        Recipe(name="wrong", summary="", **wrong)

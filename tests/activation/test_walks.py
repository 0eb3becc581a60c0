"""How a change grows from gradients."""

import pytest
import torch

from homing.activation.recipe import Recipe
from homing.activation.walks import MOMENTUM, Bounded, Loose, walk_of
from homing.errors import HomingError
from homing.perception import JND
from homing.perception.budgets import TYPICAL


@pytest.fixture
def rooms() -> torch.Tensor:
    return 0.01 + 0.05 * torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def loudness(changes: torch.Tensor) -> torch.Tensor:
    return changes.square().mean(dim=(1, 2, 3)).sqrt()


def test_the_bounded_walk_is_adam_on_what_the_paper_writes(rooms: torch.Tensor) -> None:
    """The same by autograd: I_o + room · tanh δ, a pull that is the same at every step, and λ times the squares."""
    pull = torch.randn(rooms.shape, generator=torch.Generator().manual_seed(1)) / 1000
    delta = torch.zeros_like(rooms, requires_grad=True)
    adam = torch.optim.Adam([delta], lr=0.5)
    ours = Bounded(rooms, rate=0.5, fidelity=2.0)
    for _ in range(4):
        change = rooms * torch.tanh(delta)
        adam.zero_grad()
        ((change * pull).sum() + 2.0 * change.square().mean(dim=(1, 2, 3)).sum()).backward()
        adam.step()
        ours.step(pull)
    torch.testing.assert_close(ours.arrived(), torch.tanh(delta).detach())


@pytest.mark.parametrize("power", [0.5, 0.7])
def test_the_loose_walk_takes_steps_as_loud_as_its_rate_by_a_power_of_the_gradient(
    rooms: torch.Tensor, power: float
) -> None:
    pull = torch.randn(rooms.shape, generator=torch.Generator().manual_seed(1))
    allowed = TYPICAL * loudness(rooms)
    walk = Loose(rooms, rate=0.2, power=power)
    walk.step(pull)
    torch.testing.assert_close(loudness(rooms * walk.pattern), 0.2 * allowed)
    ratio = walk.pattern[0].flatten().abs() / pull[0].flatten().abs().pow(power)
    torch.testing.assert_close(ratio, ratio[0].expand_as(ratio), rtol=1e-3, atol=0)
    assert ((walk.pattern * pull) < 0).all()
    walk.step(pull)
    torch.testing.assert_close(loudness(rooms * walk.pattern), (0.2 + 0.2 * (1 + MOMENTUM)) * allowed)


def test_steps_fade_to_nothing(rooms: torch.Tensor) -> None:
    """By a third of the rate from step to step, of three; what came before goes on with momentum."""
    pull = torch.randn(rooms.shape, generator=torch.Generator().manual_seed(1))
    walk = walk_of(Recipe(name="r", summary="", loose=True, steps=3, rate=0.15, fading=True), rooms)
    paces, before = [], torch.zeros_like(rooms)
    for _ in range(3):
        walk.step(pull)
        paces.append(loudness(rooms * (walk.pattern - before)) / (TYPICAL * loudness(rooms)))
        before = walk.pattern.clone()
    expected = [0.15, 0.1 + MOMENTUM * 0.15, 0.05 + MOMENTUM * (0.1 + MOMENTUM * 0.15)]
    for pace, so_loud in zip(paces, expected, strict=True):
        torch.testing.assert_close(pace, torch.full_like(pace, so_loud), rtol=1e-3, atol=0)


def test_a_loose_walk_never_grows_louder_than_allowed_and_arrives_there(rooms: torch.Tensor) -> None:
    allowed = TYPICAL * loudness(rooms)
    walk = Loose(rooms, rate=0.3)
    for seed in range(5):
        walk.step(torch.randn(rooms.shape, generator=torch.Generator().manual_seed(seed)))
        assert (loudness(rooms * walk.pattern) <= allowed * (1 + 1e-5)).all()
    torch.testing.assert_close(loudness(rooms * walk.arrived()), allowed)


def test_where_nothing_pulls_nothing_moves(rooms: torch.Tensor) -> None:
    for walk in (Loose(rooms, rate=0.3), Bounded(rooms, rate=1.0, fidelity=1.0)):
        walk.step(torch.zeros_like(rooms))
        assert not walk.arrived().any()


@pytest.mark.parametrize(("budget", "within"), [(JND(psnr=43.8), False), (JND(alpha=3.0), True)])
def test_an_alpha_binds_every_pixel(rooms: torch.Tensor, budget: JND, within: bool) -> None:
    walk = walk_of(Recipe(name="r", summary="", loose=True, rate=0.5, budget=budget), rooms)
    for seed in range(3):
        walk.step(torch.randn(rooms.shape, generator=torch.Generator().manual_seed(seed)))
    assert (walk.arrived().abs().max() <= 1) == within


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"views": 1.5},
        {"rate": 0.0},
        {"fidelity": -1.0},
        {"loose": True, "power": 1.1},
        {"power": 1.0},
        {"fading": True},
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(HomingError):
        Recipe(name="wrong", summary="", **wrong)

"""Expectation over transformations: what the loop sees of a photo beside the photo itself."""

import numpy as np
import pytest
import torch
from torch import nn

from homing.activation import RECIPES, Recipe
from homing.activation.engine import _pull, optimise
from homing.activation.views import EDITS, randomly_edited, views_of
from homing.edits.differentiable import TWINS, Views, random_edits
from homing.errors import HomingError
from homing.extractors import NetworkExtractor, describe
from homing.objectives import Objective, objective_for
from homing.perception import JND

SIDE = 40


class Counting(nn.Module):
    """A small network that knows how many photos it saw at once."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.seen: list[int] = []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(images))
        return self.network(images)


@pytest.fixture
def network() -> Counting:
    return Counting()


@pytest.fixture
def small(network: Counting) -> NetworkExtractor:
    return NetworkExtractor(network, name="small", size=SIDE, device="cpu")


@pytest.fixture
def squares(flower) -> Views:
    """Four parts of a flower."""
    view = flower.view()
    parts = [view[:, y : y + SIDE, x : x + SIDE] for y, x in ((0, 0), (100, 200), (200, 100), (300, 400))]
    return Views(torch.stack(parts), torch.tensor([1.0, 1.5, 0.7, 1.0]))


class Towards(Objective):
    """The squared distance to other photos."""

    of_each = ("aims",)

    def __init__(self, extractor: NetworkExtractor, squares: Views) -> None:
        self.aims = extractor(squares.pixels.flip(0)).detach()

    def __call__(self, descriptors: torch.Tensor) -> torch.Tensor:
        return (descriptors - self.aims).square().sum(dim=1)


def test_the_photo_itself_is_always_among_its_views(squares: Views) -> None:
    rng = np.random.default_rng(0)
    for _ in range(2):
        batches = list(views_of(squares, 8, 3, rng, randomly_edited))
        assert [len(each) for each in batches] == [12, 12, 8]
        first, *copies = torch.cat(batches).view(8, *squares.pixels.shape)
        assert torch.equal(first, squares.pixels)
        assert all(not torch.equal(copy[photo], squares.pixels[photo]) for copy in copies for photo in range(4))
        assert len({copy[0].numpy().tobytes() for copy in copies}) == 7


def test_the_copies_are_made_by_whom_one_asks(squares: Views) -> None:
    def darker(views: Views, _: np.random.Generator) -> Views:
        return Views(views.pixels * 0.5, views.ratio)

    (views,) = views_of(squares, 3, 3, np.random.default_rng(0), darker)
    assert torch.equal(views, torch.cat([squares.pixels, 0.5 * squares.pixels, 0.5 * squares.pixels]))


def test_each_copy_has_one_edit_and_geometry_is_most_often(squares: Views) -> None:
    drawn: dict[str, int] = dict.fromkeys(EDITS, 0)

    def counted(name: str):
        def edit(views: Views, _strength: torch.Tensor, _generator: torch.Generator) -> Views:
            drawn[name] += len(views)
            return views

        return edit

    with pytest.MonkeyPatch.context() as patch:
        for name in EDITS:
            patch.setitem(TWINS, name, counted(name))
        randomly_edited(squares.repeat(500), np.random.default_rng(0))
    assert sum(drawn.values()) == 4 * 500
    spatial, pixel = drawn["rotation"] + drawn["crop"], drawn["blur"] + drawn["jpeg"]
    colour = sum(drawn.values()) - spatial - pixel
    assert spatial / colour == pytest.approx(4.0, rel=0.15)
    assert pixel / colour == pytest.approx(0.3, rel=0.2)
    assert drawn["rotation"] / drawn["crop"] == pytest.approx(4 / 3, rel=0.15)


def test_only_one_view_draws_nothing(squares: Views) -> None:
    rng = np.random.default_rng(0)
    (only,) = views_of(squares, 1, 3, rng, randomly_edited)
    assert torch.equal(only, squares.pixels)
    assert rng.random() == np.random.default_rng(0).random()


def test_the_pull_is_the_gradient_of_the_mean_over_the_views(small: NetworkExtractor, squares: Views) -> None:
    objective = Towards(small, squares)
    pixels = squares.pixels.clone().requires_grad_()
    views = torch.cat(list(views_of(Views(pixels, squares.ratio), 8, 4, np.random.default_rng(3), randomly_edited)))
    losses = torch.stack([objective(small(each)) for each in views.split(4)])
    losses.mean(dim=0).sum().backward()
    ours = _pull(
        Views(squares.pixels.clone(), squares.ratio), 8, small, objective, np.random.default_rng(3), randomly_edited
    )
    assert pixels.grad.abs().max() > 0
    torch.testing.assert_close(ours, pixels.grad, rtol=1e-4, atol=1e-8)


def test_copies_are_asked_for_what_the_objective_asks_of_copies(small: NetworkExtractor, squares: Views) -> None:
    """Here nothing: then the pull is that of the photo itself, shared out among the views."""

    class OfPhotos(Towards):
        def of_copies(self, descriptors: torch.Tensor) -> torch.Tensor:
            return 0 * descriptors.sum(dim=1)

    def pull(count: int, objective: Objective) -> torch.Tensor:
        views = Views(squares.pixels.clone(), squares.ratio)
        return _pull(views, count, small, objective, np.random.default_rng(3), randomly_edited)

    alone = pull(1, Towards(small, squares))
    assert alone.abs().max() > 0
    torch.testing.assert_close(pull(8, OfPhotos(small, squares)), alone / 8, rtol=1e-4, atol=1e-8)


def test_the_network_never_sees_more_than_it_takes_well(
    network: Counting, small: NetworkExtractor, squares: Views
) -> None:
    network.seen.clear()
    objective = Towards(small, squares)
    recipe = Recipe(name="many", summary="", steps=2, views=20, budget=JND(alpha=3.0))
    optimise(list(squares.pixels), extractor=small, objective=objective, recipe=recipe)
    assert network.seen == [4, *[16] * 10]


def test_the_same_photos_give_the_same_change(small: NetworkExtractor, squares: Views) -> None:
    objective = Towards(small, squares)

    def moved(views: int) -> list[torch.Tensor]:
        torch.manual_seed(views)
        recipe = Recipe(name="r", summary="", steps=3, views=views, budget=JND(alpha=3.0))
        return optimise(list(squares.pixels), extractor=small, objective=objective, recipe=recipe)

    assert all(torch.equal(*pair) for pair in zip(moved(4), moved(4), strict=True))
    assert not all(torch.equal(*pair) for pair in zip(moved(4), moved(5), strict=True))


def test_edited_copies_come_nearer_than_without_views(flower, extractor, codebook) -> None:
    view = flower.view()
    objective = objective_for(codebook, describe(extractor, [view]).repeat(12, 1))

    def distance(change: torch.Tensor) -> float:
        square = extractor.resize((view + change).clamp(0, 1))
        copies = Views(square.repeat(12, 1, 1, 1), torch.full((12,), view.shape[2] / view.shape[1]))
        with torch.no_grad():
            edited = random_edits(copies, EDITS, np.random.default_rng(99)).pixels
            return float(objective(extractor(edited)).mean())

    def moved(views: int) -> torch.Tensor:
        recipe = Recipe(name="r", summary="", steps=3, views=views, budget=JND(psnr=40.0))
        aim = objective_for(codebook, describe(extractor, [view]))
        return optimise([view], extractor=extractor, objective=aim, recipe=recipe)[0]

    assert distance(moved(4)) < distance(moved(1)) < distance(torch.zeros_like(view))


def test_the_papers_recipe_has_eight_views() -> None:
    assert RECIPES["paper-eot"].views == 8
    assert RECIPES["paper-eot"].steps == RECIPES["paper"].steps == 10
    assert str(RECIPES["paper-eot"]) == "paper-eot: 10 steps of 8 views, rate 1, JND at 43.8 dB"
    with pytest.raises(HomingError, match="whole number of views, at least 1, got 0"):
        Recipe(name="none", summary="", views=0)

"""Expectation over transformations: edited copies in the loop."""

import numpy as np
import pytest
import torch
from torch import nn

from homing.activation import RECIPES, Recipe
from homing.activation.optimize import EDITS, _gradient, eot_samples_of, optimize, random_edit
from homing.edits import KINDS, Views, random_edits
from homing.errors import HomingError
from homing.extractors import NetworkExtractor, describe_images
from homing.objectives import Objective, objective_for
from homing.perception import JND

SIDE = 40


class Counting(nn.Module):
    """A small network that records its batch sizes."""

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
def inputs(flower) -> Views:
    """Four parts of a flower."""
    image = flower.pixels()
    parts = [image[:, y : y + SIDE, x : x + SIDE] for y, x in ((0, 0), (100, 200), (200, 100), (300, 400))]
    return Views(torch.stack(parts), torch.tensor([1.0, 1.5, 0.7, 1.0]))


class TowardsOthers(Objective):
    """Squared distance to other photos."""

    per_photo = ("targets",)

    def __init__(self, extractor: NetworkExtractor, inputs: Views) -> None:
        self.targets = extractor(inputs.pixels.flip(0)).detach()

    def __call__(self, descriptors: torch.Tensor) -> torch.Tensor:
        return (descriptors - self.targets).square().sum(dim=1)


def test_the_first_sample_is_the_photo_itself(inputs: Views) -> None:
    rng = np.random.default_rng(0)
    for _ in range(2):
        batches = list(eot_samples_of(inputs, 8, 3, rng, random_edit))
        assert [len(each) for each in batches] == [12, 12, 8]
        first, *copies = torch.cat(batches).view(8, *inputs.pixels.shape)
        assert torch.equal(first, inputs.pixels)
        assert all(not torch.equal(copy[photo], inputs.pixels[photo]) for copy in copies for photo in range(4))
        assert len({copy[0].numpy().tobytes() for copy in copies}) == 7


def test_the_copies_are_made_by_the_given_edit(inputs: Views) -> None:
    def darker(views: Views, _: np.random.Generator) -> Views:
        return Views(views.pixels * 0.5, views.ratio)

    (views,) = eot_samples_of(inputs, 3, 3, np.random.default_rng(0), darker)
    assert torch.equal(views, torch.cat([inputs.pixels, 0.5 * inputs.pixels, 0.5 * inputs.pixels]))


def test_each_copy_has_one_edit_most_often_a_geometric_one(inputs: Views) -> None:
    counts: dict[str, int] = dict.fromkeys(EDITS, 0)

    def counted(name: str):
        def edit(views: Views, strength: torch.Tensor) -> Views:  # noqa: ARG001
            counts[name] += len(views)
            return views

        return edit

    with pytest.MonkeyPatch.context() as patch:
        for name in EDITS:
            patch.setattr(KINDS[name], "views_function", counted(name))
        random_edit(inputs.repeat(500), np.random.default_rng(0))
    assert sum(counts.values()) == 4 * 500
    spatial, pixel = counts["rotation"] + counts["crop"], counts["blur"] + counts["jpeg"]
    color = sum(counts.values()) - spatial - pixel
    assert spatial / color == pytest.approx(4.0, rel=0.15)
    assert pixel / color == pytest.approx(0.3, rel=0.2)
    assert counts["rotation"] / counts["crop"] == pytest.approx(4 / 3, rel=0.15)


def test_a_single_sample_draws_no_random_numbers(inputs: Views) -> None:
    rng = np.random.default_rng(0)
    (only,) = eot_samples_of(inputs, 1, 3, rng, random_edit)
    assert torch.equal(only, inputs.pixels)
    assert rng.random() == np.random.default_rng(0).random()


def test_the_gradient_is_that_of_the_mean_over_the_samples(small: NetworkExtractor, inputs: Views) -> None:
    objective = TowardsOthers(small, inputs)
    pixels = inputs.pixels.clone().requires_grad_()
    views = torch.cat(list(eot_samples_of(Views(pixels, inputs.ratio), 8, 4, np.random.default_rng(3), random_edit)))
    losses = torch.stack([objective(small(each)) for each in views.split(4)])
    losses.mean(dim=0).sum().backward()
    ours = _gradient(
        Views(inputs.pixels.clone(), inputs.ratio), 8, small, objective, np.random.default_rng(3), random_edit
    )
    assert pixels.grad.abs().max() > 0
    torch.testing.assert_close(ours, pixels.grad, rtol=1e-4, atol=1e-8)


def test_copies_get_the_copy_loss(small: NetworkExtractor, inputs: Views) -> None:
    """With a copy loss of zero, the gradient is that of the photo itself, divided by the number of views."""

    class OfPhotos(TowardsOthers):
        def copy_loss(self, descriptors: torch.Tensor) -> torch.Tensor:
            return 0 * descriptors.sum(dim=1)

    def gradient(count: int, objective: Objective) -> torch.Tensor:
        views = Views(inputs.pixels.clone(), inputs.ratio)
        return _gradient(views, count, small, objective, np.random.default_rng(3), random_edit)

    alone = gradient(1, TowardsOthers(small, inputs))
    assert alone.abs().max() > 0
    torch.testing.assert_close(gradient(8, OfPhotos(small, inputs)), alone / 8, rtol=1e-4, atol=1e-8)


def test_the_network_never_sees_too_large_a_batch(network: Counting, small: NetworkExtractor, inputs: Views) -> None:
    network.seen.clear()
    objective = TowardsOthers(small, inputs)
    recipe = Recipe(name="many", summary="", steps=2, eot_samples=20, budget=JND(alpha=3.0))
    optimize(list(inputs.pixels), extractor=small, objective=objective, recipe=recipe)
    assert network.seen == [4, *[16] * 10]


def test_the_same_photos_give_the_same_change(small: NetworkExtractor, inputs: Views) -> None:
    objective = TowardsOthers(small, inputs)

    def changes(eot_samples: int) -> list[torch.Tensor]:
        torch.manual_seed(eot_samples)
        recipe = Recipe(name="r", summary="", steps=3, eot_samples=eot_samples, budget=JND(alpha=3.0))
        return optimize(list(inputs.pixels), extractor=small, objective=objective, recipe=recipe)

    assert all(torch.equal(*pair) for pair in zip(changes(4), changes(4), strict=True))
    assert not all(torch.equal(*pair) for pair in zip(changes(4), changes(5), strict=True))


def test_more_samples_bring_edited_copies_nearer(flower, extractor, codebook) -> None:
    image = flower.pixels()
    objective = objective_for(codebook, describe_images(extractor, [image]).repeat(12, 1))

    def distance(change: torch.Tensor) -> float:
        resized = extractor.resize((image + change).clamp(0, 1))
        copies = Views(resized.repeat(12, 1, 1, 1), torch.full((12,), image.shape[2] / image.shape[1]))
        with torch.no_grad():
            edited = random_edits(copies, EDITS, np.random.default_rng(99)).pixels
            return float(objective(extractor(edited)).mean())

    def changes(eot_samples: int) -> torch.Tensor:
        recipe = Recipe(name="r", summary="", steps=3, eot_samples=eot_samples, budget=JND(psnr=40.0))
        objective_of_one = objective_for(codebook, describe_images(extractor, [image]))
        return optimize([image], extractor=extractor, objective=objective_of_one, recipe=recipe)[0]

    assert distance(changes(4)) < distance(changes(1)) < distance(torch.zeros_like(image))


def test_the_papers_eot_recipe_has_eight_samples() -> None:
    assert RECIPES["paper-eot"].eot_samples == 8
    assert RECIPES["paper-eot"].steps == RECIPES["paper"].steps == 10
    assert str(RECIPES["paper-eot"]) == "paper-eot: 10 steps of 8 EOT samples, lr 1, JND at 43.8 dB"
    with pytest.raises(HomingError, match="eot_samples must be a whole number of at least 1, got 0"):
        Recipe(name="none", summary="", eot_samples=0)

from dataclasses import replace

import pytest
import torch

from homing import extractors
from homing.activation import RECIPES, Recipe
from homing.activation.engine import optimise
from homing.codebooks import Codebook
from homing.extractors import Extractor, base, describe
from homing.objectives import objective_for
from homing.perception import JND, Linf
from homing.photo import Photo

QUICK = Recipe(name="quick", summary="", steps=2, budget=JND(alpha=3.0))


@pytest.fixture(scope="module")
def views(photos) -> list[torch.Tensor]:
    """Three photos of three sizes, one of them grey."""
    return [Photo.load(photos / name).view() for name in ("flower.jpg", "chelsea.png", "camera.png")]


def changes(views, extractor: Extractor, codebook: Codebook, recipe: Recipe) -> list[torch.Tensor]:
    objective = objective_for(codebook, describe(extractor, views))
    return optimise(views, extractor=extractor, objective=objective, recipe=recipe)


def test_brings_every_photo_nearer_to_its_code(views, extractor, codebook) -> None:
    originals = describe(extractor, views)
    objective = objective_for(codebook, originals)
    moved = [view + change for view, change in zip(views, changes(views, extractor, codebook, QUICK), strict=True)]
    assert (objective(describe(extractor, moved)) < 0.9 * objective(originals)).all()


def test_stays_within_the_budget(views, extractor, codebook) -> None:
    for view, change in zip(views, changes(views, extractor, codebook, QUICK), strict=True):
        assert change.shape == view.shape
        assert (change.abs() <= QUICK.budget.room(view) + 1e-7).all()


def test_a_loose_recipe_keeps_the_budget_as_a_whole_and_not_pixel_by_pixel(views, extractor, codebook) -> None:
    recipe = replace(QUICK, steps=4, loose=True, budget=JND(psnr=40.0))
    views = [extractor.resize(view) for view in views]  # larger, a pattern is smooth between the network's pixels
    for view, change in zip(views, changes(views, extractor, codebook, recipe), strict=True):
        assert change.square().mean().log10().item() == pytest.approx(-4.0, abs=1e-3)
        assert (change.abs() > recipe.budget.room(view)).any()


def test_an_alpha_holds_for_every_pixel_of_every_recipe(views, extractor, codebook) -> None:
    recipe = replace(QUICK, loose=True, budget=Linf(alpha=4.0))
    for change in changes(views, extractor, codebook, recipe):
        assert 0 < change.abs().max() <= 4 / 255 + 1e-6


def test_a_grey_photo_stays_grey(views, extractor, codebook) -> None:
    grey = changes(views, extractor, codebook, QUICK)[2]
    assert torch.equal(grey[0], grey[1])
    assert torch.equal(grey[1], grey[2])


def test_is_deterministic(views, extractor, codebook) -> None:
    for first, second in zip(
        changes(views, extractor, codebook, QUICK), changes(views, extractor, codebook, QUICK), strict=True
    ):
        assert torch.equal(first, second)


def test_one_step_is_the_papers_step(views, extractor, codebook) -> None:
    """Adam's first step has length `rate` whatever the gradient, so delta is rate · sign: written out by hand."""
    view = extractor.resize(views[0])  # at the network's own size nothing is resized
    original = describe(extractor, [view])
    room = QUICK.budget.room(view)
    delta = torch.zeros_like(view, requires_grad=True)
    moved = extractor((view + room * torch.tanh(delta))[None])
    (moved - codebook.reconstruct(original)).square().sum().backward()
    expected = room * torch.tanh(-delta.grad.sign())
    (ours,) = changes([view], extractor, codebook, Recipe(name="one", summary="", steps=1, budget=JND(alpha=3.0)))
    clear = delta.grad.abs() > delta.grad.abs().median()  # where neither rounding nor Adam's epsilon matters
    assert delta.grad.abs().median() > 0
    agree = torch.isclose(ours[clear], expected[clear], atol=1e-3, rtol=0.05)
    assert agree.float().mean() > 0.99


def test_a_photo_of_any_size_is_moved_at_its_own(extractor, codebook) -> None:
    for size in ((100, 300), (700, 500), (9, 9)):
        view = torch.rand(3, *size)
        (change,) = changes([view], extractor, codebook, QUICK)
        assert change.shape == view.shape
        assert change.abs().max() > 0
        assert (change.abs() <= QUICK.budget.room(view) + 1e-7).all()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_a_summary_and_a_budget(name: str) -> None:
    assert RECIPES[name].name == name
    assert RECIPES[name].summary
    assert RECIPES[name].budget.psnr == 43.8


def gained(views, extractor, codebook, network, recipe: Recipe) -> torch.Tensor:
    """By how much the loop, run on a network, lowers what the reference says of each photo."""
    reference = objective_for(codebook, describe(extractor, views), margin=recipe.margin)
    target = objective_for(codebook, describe(network, views).to(network.device), margin=recipe.margin)
    moved = optimise(views, extractor=network, objective=target, recipe=recipe)
    after = describe(extractor, [view + change for view, change in zip(views, moved, strict=True)])
    return reference(describe(extractor, views)) - reference(after)


@pytest.mark.parametrize("how", ["half", "compiled"])
def test_half_precision_and_compilation_gain_what_the_reference_gains(views, extractor, codebook, how: str) -> None:
    """Within a tenth. What a GPU does, on the CPU."""
    network = extractors.load(extractor.name, device="cpu")
    if how == "half":
        network._half = True
    else:
        network._looped = torch.compile(network.__call__, backend="aot_eager")
    recipe = RECIPES["homing-fast"]
    exact = gained(views, extractor, codebook, extractor, recipe)
    assert (exact > 0.01).all()
    torch.testing.assert_close(gained(views, extractor, codebook, network, recipe), exact, rtol=0.1, atol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["paper", "homing-fast"])
def test_a_gpu_moves_photos_as_a_cpu_does(views, extractor, codebook, name: str, compiled: bool) -> None:
    """In half precision, and compiled, it gains the same within a tenth."""
    gpu = extractors.load(extractor.name, device="cuda")
    if compiled:
        gpu = gpu.compiled()
    exact = gained(views, extractor, codebook, extractor, RECIPES[name])
    assert (exact > 0).all()
    torch.testing.assert_close(gained(views, extractor, codebook, gpu, RECIPES[name]), exact, rtol=0.1, atol=0)


def test_a_batch_that_is_filled_up_moves_photos_as_they_would_be(
    views, extractor, codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a GPU does it, on the CPU."""
    described, alone = describe(extractor, views), changes(views, extractor, codebook, QUICK)
    monkeypatch.setattr(base, "_batch_for", lambda count, device: count + 3)
    torch.testing.assert_close(describe(extractor, views), described)
    for one, other in zip(changes(views, extractor, codebook, QUICK), alone, strict=True):
        assert float((one - other).norm() / other.norm()) < 0.05


def test_a_gpu_meets_few_sizes_of_batches() -> None:
    def batch(count: int) -> int:
        return base._batch_for(count, torch.device("cuda"))

    sizes = {count: batch(count) for count in range(1, 700)}
    assert all(size >= count for count, size in sizes.items())
    assert len({size for count, size in sizes.items() if count <= 256}) < 8
    assert base._batch_for(3, torch.device("cpu")) == 3

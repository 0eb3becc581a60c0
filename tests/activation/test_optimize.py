from dataclasses import replace

import pytest
import torch

from homing import extractors
from homing.activation import RECIPES, Recipe
from homing.activation.optimize import optimize
from homing.codebooks import Codebook
from homing.extractors import Extractor, base, describe_images
from homing.objectives import objective_for
from homing.perception import JND, Linf
from homing.photo import Photo

QUICK = Recipe(name="quick", summary="", steps=2, budget=JND(alpha=3.0))


@pytest.fixture(scope="module")
def images(photos) -> list[torch.Tensor]:
    """Three photos of three sizes, one of them gray."""
    return [Photo.load(photos / name).pixels() for name in ("flower.jpg", "chelsea.png", "camera.png")]


def changes(images, extractor: Extractor, codebook: Codebook, recipe: Recipe) -> list[torch.Tensor]:
    objective = objective_for(codebook, describe_images(extractor, images))
    return optimize(images, extractor=extractor, objective=objective, recipe=recipe)


def test_optimization_brings_every_photo_nearer_to_its_code(images, extractor, codebook) -> None:
    originals = describe_images(extractor, images)
    objective = objective_for(codebook, originals)
    changed = [
        image + change for image, change in zip(images, changes(images, extractor, codebook, QUICK), strict=True)
    ]
    assert (objective(describe_images(extractor, changed)) < 0.9 * objective(originals)).all()


def test_changes_stay_within_the_budget(images, extractor, codebook) -> None:
    for image, change in zip(images, changes(images, extractor, codebook, QUICK), strict=True):
        assert change.shape == image.shape
        assert (change.abs() <= QUICK.budget.pixel_bound(image) + 1e-7).all()


def test_an_image_constraint_holds_for_the_image_and_not_for_each_pixel(images, extractor, codebook) -> None:
    recipe = replace(QUICK, steps=4, constraint="image", budget=JND(psnr=40.0))
    images = [
        extractor.resize(image) for image in images
    ]  # a pattern for a larger image is smooth between the network's pixels
    for image, change in zip(images, changes(images, extractor, codebook, recipe), strict=True):
        assert change.square().mean().log10().item() == pytest.approx(-4.0, abs=1e-3)
        assert (change.abs() > recipe.budget.pixel_bound(image)).any()


def test_alpha_bounds_every_pixel_for_every_recipe(images, extractor, codebook) -> None:
    recipe = replace(QUICK, constraint="image", budget=Linf(alpha=4.0))
    for change in changes(images, extractor, codebook, recipe):
        assert 0 < change.abs().max() <= 4 / 255 + 1e-6


def test_a_gray_photo_stays_gray(images, extractor, codebook) -> None:
    gray = changes(images, extractor, codebook, QUICK)[2]
    assert torch.equal(gray[0], gray[1])
    assert torch.equal(gray[1], gray[2])


def test_optimization_is_deterministic(images, extractor, codebook) -> None:
    for first, second in zip(
        changes(images, extractor, codebook, QUICK), changes(images, extractor, codebook, QUICK), strict=True
    ):
        assert torch.equal(first, second)


def test_one_step_is_the_papers_step(images, extractor, codebook) -> None:
    """Adam's first step has length `lr` for any gradient, so delta is lr · sign."""
    image = extractor.resize(images[0])  # at the network's input size nothing is resized
    original = describe_images(extractor, [image])
    pixel_bound = QUICK.budget.pixel_bound(image)
    delta = torch.zeros_like(image, requires_grad=True)
    changed = extractor((image + pixel_bound * torch.tanh(delta))[None])
    (changed - codebook.reconstruct(original)).square().sum().backward()
    expected = pixel_bound * torch.tanh(-delta.grad.sign())
    (ours,) = changes([image], extractor, codebook, Recipe(name="one", summary="", steps=1, budget=JND(alpha=3.0)))
    clear = delta.grad.abs() > delta.grad.abs().median()  # pixels where neither rounding nor Adam's epsilon matters
    assert delta.grad.abs().median() > 0
    equal = torch.isclose(ours[clear], expected[clear], atol=1e-3, rtol=0.05)
    assert equal.float().mean() > 0.99


def test_a_change_has_the_size_of_its_photo(extractor, codebook) -> None:
    for size in ((100, 300), (700, 500), (9, 9)):
        image = torch.rand(3, *size)
        (change,) = changes([image], extractor, codebook, QUICK)
        assert change.shape == image.shape
        assert change.abs().max() > 0
        assert (change.abs() <= QUICK.budget.pixel_bound(image) + 1e-7).all()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_a_summary_and_a_budget(name: str) -> None:
    assert RECIPES[name].name == name
    assert RECIPES[name].summary
    assert RECIPES[name].budget.psnr == 43.8


def loss_decrease(images, extractor, codebook, network, recipe: Recipe) -> torch.Tensor:
    """The decrease of each photo's loss on the reference, for a change optimized on `network`."""
    reference = objective_for(codebook, describe_images(extractor, images), recipe.objective)
    target = objective_for(codebook, describe_images(network, images).to(network.device), recipe.objective)
    changed = optimize(images, extractor=network, objective=target, recipe=recipe)
    after = describe_images(extractor, [image + change for image, change in zip(images, changed, strict=True)])
    return reference(describe_images(extractor, images)) - reference(after)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["half", "compiled"])
def test_half_precision_and_compilation_gain_what_the_reference_gains(images, extractor, codebook, how: str) -> None:
    """Within a tenth; tests what a GPU does on the CPU."""
    network = extractors.load(extractor.name, device="cpu")
    if how == "half":
        network._half = True
    else:
        network._fast = torch.compile(network.__call__, backend="aot_eager")
    recipe = RECIPES["homing-fast"]
    exact = loss_decrease(images, extractor, codebook, extractor, recipe)
    assert (exact > 0.01).all()
    torch.testing.assert_close(loss_decrease(images, extractor, codebook, network, recipe), exact, rtol=0.1, atol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["paper", "homing-fast"])
def test_a_gpu_gives_the_changes_of_a_cpu(images, extractor, codebook, name: str, compiled: bool) -> None:
    """In half precision and compiled, the gain is the same within a tenth."""
    gpu = extractors.load(extractor.name, device="cuda")
    if compiled:
        gpu = gpu.compiled()
    exact = loss_decrease(images, extractor, codebook, extractor, RECIPES[name])
    assert (exact > 0).all()
    torch.testing.assert_close(loss_decrease(images, extractor, codebook, gpu, RECIPES[name]), exact, rtol=0.1, atol=0)


def test_a_padded_batch_gives_the_same_changes(images, extractor, codebook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding as on a GPU."""
    described, alone = describe_images(extractor, images), changes(images, extractor, codebook, QUICK)
    monkeypatch.setattr(base, "_padded_batch_size", lambda count, device: count + 3)
    torch.testing.assert_close(describe_images(extractor, images), described)
    for one, other in zip(changes(images, extractor, codebook, QUICK), alone, strict=True):
        assert float((one - other).norm() / other.norm()) < 0.05


def test_batches_on_a_gpu_are_padded_to_few_sizes() -> None:
    def batch(count: int) -> int:
        return base._padded_batch_size(count, torch.device("cuda"))

    sizes = {count: batch(count) for count in range(1, 700)}
    assert all(size >= count for count, size in sizes.items())
    assert len({size for count, size in sizes.items() if count <= 256}) < 8
    assert base._padded_batch_size(3, torch.device("cpu")) == 3

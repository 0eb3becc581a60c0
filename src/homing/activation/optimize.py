"""The one loop: gradient descent on pixels, under a budget. Tensors in, tensors out.

Expectation over transformations (EOT): each step averages the loss over the photo and edited copies of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._tensors import map_by_shape
from homing.activation.recipe import Recipe
from homing.edits import Ranges, Views, random_edits
from homing.extractors import Extractor
from homing.extractors.base import batch_indices, default_batch_size, forward_fast
from homing.objectives import Objective
from homing.perception.budgets import TYPICAL_SHARE, is_grayscale
from homing.perception.quality import rms

EDITS: Ranges = {
    "brightness": (0.4, 2.4),
    "contrast": (0.4, 2.4),
    "saturation": (0.5, 2.0),
    "hue": (-0.25, 0.25),
    "blur": (0.3, 2.0),
    "jpeg": (30, 90),
    "rotation": (-90, 90),
    "crop": (0.35, 0.8),
}
"""The edits of EOT samples, at the network's input size; somewhat stronger than in the paper's table."""

EDIT_WEIGHTS = {"rotation": 4.0, "crop": 3.0}
"""Relative frequency of an edit within its family (default 1): most lost copies are rotated or cropped."""

FAMILY_WEIGHTS = {"spatial": 4.0, "pixel": 0.3}
"""Relative frequency of a family (default 1): robustness to the other families covers blur and JPEG as well."""

EditFunction = Callable[[Views, np.random.Generator], Views]

MOMENTUM = 0.7
_SEED = 0
_gpu_lock = threading.Lock()  # two loops on one GPU are no faster than one, and take twice the memory


def random_edit(views: Views, rng: np.random.Generator) -> Views:
    """One random edit of each view; robustness to single edits also covers combinations of them."""
    return random_edits(views, EDITS, rng, edit_weights=EDIT_WEIGHTS, family_weights=FAMILY_WEIGHTS, counts=(1.0,))


@dataclass(frozen=True)
class NetworkInputs:
    """B photos at the input size of the network, as the loop uses them."""

    pixels: Tensor
    """(B, 3, S, S), the resized photos."""
    pixel_bounds: Tensor
    """(B, 3, S, S), the bound on the change of each pixel."""
    gray: Tensor
    """(B, 1, 1, 1), whether a photo is gray: its channels then get the same change."""
    ratio: Tensor
    """(B,), the width of each photo over its height."""

    @classmethod
    def of(cls, images: Sequence[Tensor], pixel_bounds: Sequence[Tensor], extractor: Extractor) -> NetworkInputs:
        """The inputs for (3, H, W) images and the pixel bounds that a budget gives them."""
        device = extractor.device
        return cls(
            torch.stack([extractor.resize(image) for image in images]).to(device),
            torch.stack([_resize(pixel_bound, extractor.size) for pixel_bound in pixel_bounds]).to(device),
            torch.stack(map_by_shape(is_grayscale, images)).to(device)[:, None, None, None],
            torch.tensor([image.shape[2] / image.shape[1] for image in images], device=device),
        )

    def select(self, indices: Tensor) -> NetworkInputs:
        """The inputs with these indices, which may repeat."""
        return NetworkInputs(self.pixels[indices], self.pixel_bounds[indices], self.gray[indices], self.ratio[indices])


def optimize(
    images: Sequence[Tensor],
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
    edit: EditFunction = random_edit,
) -> list[Tensor]:
    """The change of each (3, H, W) image that minimizes its objective within the recipe's budget.

    Images may differ in size. On a CPU, the same images in the same order give the same changes. `edit` makes the
    copies of recipes with several EOT samples.
    """
    pixel_bounds = map_by_shape(recipe.budget.pixel_bounds, images)
    indices = batch_indices(len(images), extractor.device)
    inputs, objective = NetworkInputs.of(images, pixel_bounds, extractor).select(indices), objective.select(indices)
    with _gpu_lock if extractor.device.type == "cuda" else nullcontext():
        patterns = gradient_descent(inputs, extractor=extractor, objective=objective, recipe=recipe, edit=edit)
    patterns = patterns[: len(images)].to(images[0].device)
    return [
        pixel_bound * _resize(pattern, *pixel_bound.shape[1:])
        for pixel_bound, pattern in zip(pixel_bounds, patterns, strict=True)
    ]


def gradient_descent(
    inputs: NetworkInputs,
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
    edit: EditFunction = random_edit,
) -> Tensor:
    """The pattern (B, 3, S, S) of each photo after all steps; the change is pixel_bound · pattern."""
    rng = np.random.default_rng(_SEED)
    optimizer = make_optimizer(recipe, inputs.pixel_bounds)
    for _ in range(recipe.steps):
        current = Views(inputs.pixels.addcmul(inputs.pixel_bounds, optimizer.pattern), inputs.ratio)
        gradient = _gradient(current, recipe.eot_samples, extractor, objective, rng, edit)
        optimizer.step(torch.where(inputs.gray, gradient.mean(dim=1, keepdim=True), gradient))
    return optimizer.result()


def _gradient(
    inputs: Views, count: int, extractor: Extractor, objective: Objective, rng: np.random.Generator, edit: EditFunction
) -> Tensor:
    """The gradient of the objective at (B, 3, S, S) inputs, averaged over `count` EOT samples of each."""
    pixels = inputs.pixels.requires_grad_()
    at_once = max(1, default_batch_size(extractor) // len(inputs))
    for chunk, samples in enumerate(eot_samples_of(inputs, count, at_once, rng, edit)):
        # One batch at a time, so that memory does not grow with the number of EOT samples.
        leaf = samples.detach().requires_grad_()
        parts = torch.split(forward_fast(extractor, leaf), len(inputs))
        # The first sample is the photo itself.
        losses = [(objective if chunk == index == 0 else objective.copy_loss)(part) for index, part in enumerate(parts)]
        (torch.cat(losses).sum() / count).backward()  # type: ignore[no-untyped-call]
        samples.backward(leaf.grad)  # type: ignore[no-untyped-call]
    assert pixels.grad is not None
    return pixels.grad


def eot_samples_of(
    inputs: Views, count: int, at_once: int, rng: np.random.Generator, edit: EditFunction
) -> Iterator[Tensor]:
    """Batches (n·B, 3, S, S) of `count` views of each of B inputs, at most `at_once` views per batch.

    The first view is the input itself; every other view has its own random edit.
    """
    for start in range(0, count, at_once):
        count_now = min(count - start, at_once)
        plain = [inputs.pixels] if start == 0 else []
        copies = count_now - len(plain)
        samples = [edit(inputs.repeat(copies), rng).pixels] if copies else []
        yield torch.cat([*plain, *samples]) if samples else inputs.pixels


def _resize(image: Tensor, height: int, width: int | None = None) -> Tensor:
    """A (C, H, W) image at another size."""
    size = [height, width or height]
    return F.interpolate(image[None], size, mode="bilinear", antialias=True, align_corners=False)[0]


def make_optimizer(recipe: Recipe, pixel_bounds: Tensor) -> TanhAdam | NormalizedMomentum:
    """The optimizer of a recipe for (B, 3, S, S) pixel bounds. The change of a photo is pixel_bound · pattern."""
    return (TanhAdam if recipe.constraint == "pixel" else NormalizedMomentum)(pixel_bounds, recipe)


class TanhAdam:
    """The paper's optimizer: Adam on δ, with pattern tanh δ, so no pixel exceeds its bound."""

    def __init__(self, pixel_bounds: Tensor, recipe: Recipe) -> None:
        self._pixel_bounds, self._image_weight = pixel_bounds, recipe.image_weight
        self._delta = torch.zeros_like(pixel_bounds)
        self._adam = torch.optim.Adam([self._delta], lr=recipe.lr, fused=pixel_bounds.is_cuda)
        self.pattern = torch.zeros_like(pixel_bounds)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step of Adam, given the gradient at the pixels (B, 3, S, S)."""
        # Plus the gradient of the mean squared change; by the chain rule, and in place: memory is what counts.
        delta_gradient = gradient.addcmul(
            self._pixel_bounds, self.pattern, value=2 * self._image_weight / gradient[0].numel()
        ).mul_(self._pixel_bounds)
        self._delta.grad = delta_gradient.addcmul_(delta_gradient, self.pattern.square_(), value=-1)
        self._adam.step()
        self.pattern = self._delta.tanh()

    def result(self) -> Tensor:
        """The pattern, unchanged."""
        return self.pattern


class NormalizedMomentum:
    """Momentum with steps of a fixed RMS, for recipes whose budget holds for the image as a whole.

    The step of a pixel is its gradient to the power `grad_power`. Adam's first steps use the sign only (power 0) and
    spend the budget on pixels that hardly matter; with a power of 1 and few steps, a few pixels take all of it. The RMS
    of each step is the budget times `lr`, which needs no tuning per network. A pattern that exceeds the budget is
    scaled down. With `lr_decay`, `lr` falls after each step, which averages over randomly drawn copies.
    """

    def __init__(self, pixel_bounds: Tensor, recipe: Recipe) -> None:
        self._pixel_bounds, self._lr, self._grad_power = pixel_bounds, recipe.lr, recipe.grad_power
        self._lr_step = recipe.lr / recipe.steps if recipe.lr_decay else 0.0
        self._bounds_pixels = recipe.budget.alpha is not None
        self._target_rms = TYPICAL_SHARE * _rms_per_image(pixel_bounds)
        self._velocity = torch.zeros_like(pixel_bounds)
        self.pattern = torch.zeros_like(pixel_bounds)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step with momentum, given the gradient at the pixels (B, 3, S, S)."""
        step = gradient.sign() * gradient.abs().pow(self._grad_power)
        self._velocity.mul_(MOMENTUM).add_(step * self._scale(step), alpha=-self._lr)
        self._lr -= self._lr_step
        self.pattern = self.pattern + self._velocity
        self.pattern *= self._scale(self.pattern).clamp_max(1)

    def result(self) -> Tensor:
        """The pattern, scaled to the RMS of the budget; a budget stated as alpha also bounds each pixel."""
        pattern = self.pattern * self._scale(self.pattern)
        return pattern.clamp(-1, 1) if self._bounds_pixels else pattern

    def _scale(self, pattern: Tensor) -> Tensor:
        """The factor that scales patterns to the RMS of the budget; finite for a pattern of zeros."""
        return self._target_rms / _rms_per_image(self._pixel_bounds * pattern).clamp_min(1e-12)


def _rms_per_image(changes: Tensor) -> Tensor:
    """The RMS of (B, 3, S, S) changes: (B, 1, 1, 1)."""
    return rms(changes)[:, None, None, None]

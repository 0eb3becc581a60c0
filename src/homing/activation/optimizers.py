"""Optimizers of the change, stated as a pattern relative to the bound of each pixel."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from homing.activation.recipe import Recipe
from homing.perception.budgets import TYPICAL_SHARE
from homing.perception.quality import rms

MOMENTUM = 0.7


class Optimizer(Protocol):
    """An optimizer for B photos. The change of a photo is pixel_bound · pattern."""

    pattern: Tensor

    def step(self, gradient: Tensor) -> None:
        """Take one step, given the gradient at the pixels (B, 3, S, S)."""

    def result(self) -> Tensor:
        """The pattern to release."""


def make_optimizer(recipe: Recipe, pixel_bounds: Tensor) -> Optimizer:
    """The optimizer of a recipe for (B, 3, S, S) pixel bounds."""
    if recipe.constraint == "pixel":
        return TanhAdam(pixel_bounds, recipe.lr, recipe.image_weight)
    # A budget stated as alpha bounds each pixel.
    return NormalizedMomentum(
        pixel_bounds,
        recipe.lr,
        lr_step=recipe.lr / recipe.steps if recipe.lr_decay else 0.0,
        grad_power=recipe.grad_power,
        max_share=None if recipe.budget.alpha is None else 1.0,
    )


class TanhAdam:
    """The paper's optimizer: Adam on δ, with pattern tanh δ, so no pixel exceeds its bound."""

    def __init__(self, pixel_bounds: Tensor, lr: float, image_weight: float) -> None:
        self._pixel_bounds, self._image_weight = pixel_bounds, image_weight
        self._delta = torch.zeros_like(pixel_bounds)
        self._adam = torch.optim.Adam([self._delta], lr=lr, fused=pixel_bounds.is_cuda)
        self.pattern = torch.zeros_like(pixel_bounds)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step of Adam."""
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
    scaled down. `lr` falls by `lr_step` after each step, which averages over randomly drawn copies. `max_share` also
    bounds each pixel, as a share of its bound.
    """

    def __init__(
        self,
        pixel_bounds: Tensor,
        lr: float,
        *,
        lr_step: float = 0.0,
        grad_power: float = 0.5,
        max_share: float | None = None,
    ) -> None:
        self._pixel_bounds, self._lr, self._lr_step, self._grad_power, self._max_share = (
            pixel_bounds,
            lr,
            lr_step,
            grad_power,
            max_share,
        )
        self._target_rms = TYPICAL_SHARE * _rms_per_image(pixel_bounds)
        self._velocity = torch.zeros_like(pixel_bounds)
        self.pattern = torch.zeros_like(pixel_bounds)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step with momentum."""
        step = gradient.sign() * gradient.abs().pow(self._grad_power)
        self._velocity.mul_(MOMENTUM).add_(step * self._scale(step), alpha=-self._lr)
        self._lr -= self._lr_step
        self.pattern = self.pattern + self._velocity
        self.pattern *= self._scale(self.pattern).clamp_max(1)

    def result(self) -> Tensor:
        """The pattern, scaled to the RMS of the budget."""
        pattern = self.pattern * self._scale(self.pattern)
        return pattern if self._max_share is None else pattern.clamp(-self._max_share, self._max_share)

    def _scale(self, pattern: Tensor) -> Tensor:
        """The factor that scales patterns to the RMS of the budget; finite for a pattern of zeros."""
        return self._target_rms / _rms_per_image(self._pixel_bounds * pattern).clamp_min(1e-12)


def _rms_per_image(changes: Tensor) -> Tensor:
    """The RMS of (B, 3, S, S) changes: (B, 1, 1, 1)."""
    return rms(changes)[:, None, None, None]

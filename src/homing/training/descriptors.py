"""The SSCD recipe: a network learns to know a photo from its edited copies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._parallel import map_ahead
from homing.edits.differentiable import TWINS, Views, random_edits, send
from homing.errors import HomingError
from homing.training.losses import Cells, koleo, nt_xent
from homing.training.settings import EDITS, Settings
from homing.training.squares import Squares
from homing.training.starting import starting_network

HELD_OUT = 1000
HELD_OUT_BATCH = 256
HEAD_RATE = 2.0  # the projection starts from nothing, the trunk does not
DECAY = 0.02
WARM_UP = 0.05
CELLS_FROM = 0.1  # of the way: before that the descriptors move too fast for centroids to follow
WHOLE_SIDE = 0.7  # what a batch takes for an original is a part of a photo, with at least this much of each side


class Trainer:
    """One run of training: the same photos and settings give the same batches, whenever it was interrupted."""

    def __init__(self, squares: Squares, settings: Settings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self._squares, self.device = settings, squares, device
        self.network, self.design = starting_network(settings)
        self.network.to(device).to(memory_format=torch.channels_last)
        order = np.random.default_rng(settings.seed).permutation(len(squares))
        held = min(HELD_OUT, len(squares) // 10)
        self._held, self._taught = np.sort(order[:held]), order[held:]
        if held < 2:
            raise HomingError(f"training needs at least 20 photos that can be read, got {len(squares)}")
        self.pairs = min(settings.pairs, len(self._taught))
        self._batches = len(self._taught) // self.pairs
        self.steps = max(1, round(settings.epochs * self._batches))
        self.step = 0
        self._cells = Cells(settings.cells, settings.dim, device) if settings.cells else None
        self._optimiser, self._schedule = self._optimisers()
        on_gpu = device.type == "cuda"
        self._forward: Any = torch.compile(self.network) if on_gpu else self.network
        self._autocast = torch.autocast(device.type, torch.bfloat16, enabled=on_gpu)
        self._mean = torch.tensor(self.design.mean, device=device)[:, None, None]
        self._std = torch.tensor(self.design.std, device=device)[:, None, None]

    def run(self) -> Iterator[Tensor]:
        """Teach from the present step to the last; gives the loss of each, not yet waited for."""
        self.network.train()
        for squares in map_ahead(self._batch, range(self.step, self.steps)):
            yield self._learn(squares)

    def recall(self) -> float:
        """The share of held-out photos found first, among all held-out ones, from a strongly edited copy."""
        self.network.eval()
        originals, copies = [], []
        with torch.inference_mode():
            for start in range(0, len(self._held), HELD_OUT_BATCH):
                views = self._views(self._squares.pixels[self._held[start : start + HELD_OUT_BATCH]])
                edited = random_edits(views, EDITS, np.random.default_rng([self.settings.seed, start]))
                originals.append(self._describe(self.network, views.pixels))
                copies.append(self._describe(self.network, edited.pixels))
            nearest = (torch.cat(copies) @ torch.cat(originals).T).argmax(dim=1)
        self.network.train()
        return float((nearest.cpu() == torch.arange(len(self._held))).float().mean())

    def state(self) -> dict[str, Any]:
        """All that a checkpoint must hold to go on from here."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "schedule": self._schedule.state_dict(),
            "cells": self._cells.state() if self._cells else {},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._schedule.load_state_dict(state["schedule"])
        if self._cells:
            self._cells.restore(state["cells"])

    def _batch(self, step: int) -> np.ndarray:
        """The (pairs, S, S, 3) squares of one step; each epoch has its own order."""
        epoch, place = divmod(step, self._batches)
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(self._taught)
        pixels: np.ndarray = self._squares.pixels[order[place * self.pairs : (place + 1) * self.pairs]]
        return pixels

    def _learn(self, squares: np.ndarray) -> Tensor:
        originals, copies, mixed = self._pair(squares)
        described = self._describe(self._forward, torch.cat([originals, copies]))
        loss = self._loss(described[: len(originals)], described[len(originals) :], mixed)
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self._schedule.step()
        self.step += 1
        return loss.detach()

    @torch.no_grad()
    def _pair(self, squares: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """Originals (B, 3, S, S), a copy of each, and how much of which original is in each copy (B, B)."""
        rng = np.random.default_rng([self.settings.seed, self.step])
        originals = self._cut_originals(self._views(squares), rng)
        copies = random_edits(originals, EDITS, rng).pixels
        mixed = self._mixture(rng)
        if mixed is not None:
            copies = torch.einsum("ij,jchw->ichw", mixed, copies)
        return originals.pixels, copies, mixed

    def _loss(self, originals: Tensor, copies: Tensor, mixed: Tensor | None) -> Tensor:
        loss = nt_xent(originals, copies, self.settings.temperature, mixed)
        if self.settings.koleo:
            loss = loss + self.settings.koleo * koleo(originals)
        if self._cells:
            if self.step >= CELLS_FROM * self.steps:
                loss = loss + self.settings.cell_weight * self._cells.loss(originals, copies)
            self._cells.follow(originals.detach())
        return loss

    def _views(self, pixels: np.ndarray) -> Views:
        squares = send(pixels, self.device).permute(0, 3, 1, 2).float() / 255
        return Views(squares, torch.ones(len(squares), device=self.device))

    def _cut_originals(self, views: Views, rng: np.random.Generator) -> Views:
        """Parts of photos, some mirrored, of any shape: more photos to tell apart than there are."""
        count = len(views.pixels)
        generator = torch.Generator(self.device).manual_seed(int(rng.integers(2**62)))
        side, ratio, mirrored = rng.uniform([WHOLE_SIDE, -math.log(2), 0], [1, math.log(2), 1], (count, 3)).T
        views = TWINS["fragment"](views, send(side.astype(np.float32), self.device), generator)
        flipped = send(mirrored < 0.5, self.device)[:, None, None, None]
        pixels = torch.where(flipped, views.pixels.flip(-1), views.pixels)
        return Views(pixels, send(np.exp(ratio).astype(np.float32), self.device))

    def _mixture(self, rng: np.random.Generator) -> Tensor | None:
        """How much of each copy (column) goes into each (row), (B, B); None without mixup."""
        if not self.settings.mixup:
            return None
        own = np.where(rng.random(self.pairs) < self.settings.mixup, rng.uniform(0.5, 0.8, self.pairs), 1.0)
        mixed = np.diag(own) + np.roll(np.diag(1 - own), 1, axis=1)
        return send(mixed.astype(np.float32), self.device)

    def _describe(self, network: Any, pixels: Tensor) -> Tensor:
        normal = ((pixels - self._mean) / self._std).contiguous(memory_format=torch.channels_last)
        with self._autocast:
            features = network(normal)
        return F.normalize(features.float(), dim=1)

    def _optimisers(self) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
        """AdamW; no decay of biases and norms; a short warm-up, then a cosine to nothing."""
        groups = []
        for part, rate in (
            (self.network.trunk, self.settings.rate),
            (self.network.head, HEAD_RATE * self.settings.rate),
        ):
            for flat in (False, True):
                weights = [weight for weight in part.parameters() if (weight.ndim < 2) == flat]
                groups.append({"params": weights, "lr": rate, "weight_decay": 0.0 if flat else DECAY})
        optimiser = torch.optim.AdamW(groups, fused=self.device.type == "cuda")
        warm = max(1, round(WARM_UP * self.steps))

        def factor(step: int) -> float:
            if step < warm:
                return (step + 1) / warm
            return 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, self.steps - warm))

        return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, factor)

"""Train a descriptor network as SSCD does: match photos and their edited copies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import PIL
import torch
import torch.nn.functional as F
from torch import Tensor

from homing import __version__
from homing._io.device import compile_on_gpu
from homing._io.parallel import prefetch_map
from homing.edits.differentiable import Ranges
from homing.extractors.descriptor_network import DescriptorNetwork, check_finite, trained_network, write_network
from homing.training.initialization import initial_network
from homing.training.losses import RunningCentroids, koleo, nt_xent
from homing.training.pairs import PairBatch, Pairs
from homing.training.photo_array import PhotoArray
from homing.training.settings import EDIT_WEIGHTS, EDITS, WEAK_EDITS, DescriptorSettings
from homing.training.trainer import PREFETCH_THREADS, SavedNetwork, half_precision, warmup_cosine_schedule
from homing.training.whitening import whiten

HEAD_LR_FACTOR = 2.0  # the projection is new, the trunk is pretrained
WEIGHT_DECAY = 0.02
PAIRS_PER_DIMENSION = 20  # for a good estimate of the covariance of differences
CELLS_START = 0.1  # share of the steps: before, descriptors change too fast for centroids to follow


class DescriptorTrainer:
    """The trainer of a descriptor network."""

    metric = "recall"

    def __init__(self, squares: PhotoArray, settings: DescriptorSettings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, device
        self.pairs = Pairs(squares, settings, device)
        self.steps = max(1, round(settings.epochs * self.pairs.per_epoch))
        self.step = 0
        self.views_per_step = 2 * self.pairs.count
        self.run_settings: dict[str, Any] = {
            **asdict(settings),
            "photos": len(squares),
            "data_fingerprint": squares.fingerprint,
            "edits": _plain(EDITS),
            "weak_edits": _plain(WEAK_EDITS),
            "edit_weights": EDIT_WEIGHTS,
        }
        self.network, self.config = initial_network(settings)
        self.network.to(device).to(memory_format=torch.channels_last)
        self._cells = RunningCentroids(settings.cells, settings.dim, device) if settings.cells else None
        self._optimizer, self._schedule = self._optimizers()
        self._forward = compile_on_gpu(self.network, device)
        self._autocast = half_precision(device)
        self._mean = torch.tensor(self.config.mean, device=device)[:, None, None]
        self._std = torch.tensor(self.config.std, device=device)[:, None, None]

    def run(self) -> Iterator[Tensor]:
        """Train from the current step to the last; yields losses without synchronizing the device."""
        self.network.train()
        for squares in prefetch_map(self.pairs.squares, range(self.step, self.steps), threads=PREFETCH_THREADS):
            torch.manual_seed(self.settings.seed + self.step)  # for networks with dropout
            yield self._training_step(self.pairs.batch(squares, self.step))

    def score(self) -> float:
        """The recall of held-out photos by the current network."""
        return self.recall(lambda pixels: self._describe(self.network, pixels))

    @torch.no_grad()
    def recall(self, describe: Callable[[Tensor], Tensor]) -> float:
        """Recall@1 of strongly edited copies among all held-out photos."""
        self.network.eval()
        described = [(describe(batch.originals), describe(batch.copies)) for batch in self.pairs.held_out()]
        self.network.train()
        originals, copies = (torch.cat(each) for each in zip(*described, strict=True))
        nearest = (copies @ originals.T).argmax(dim=1)
        return float((nearest == torch.arange(len(nearest), device=nearest.device)).float().mean())

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "cells": self._cells.state() if self._cells else {},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        if self._cells:
            self._cells.restore(state["cells"])

    def write(self, path: Path) -> SavedNetwork:
        """Write the network, whitened, to a file."""
        write_network(self._whitened() if self.settings.whiten else self.network, self.config, path)
        extractor = trained_network(str(path), self.device)
        facts = {
            "pairs_per_batch": self.pairs.count,
            "extractor_fingerprint": extractor.fingerprint,
            "rendered_by": {"homing": __version__, "pillow": PIL.__version__},
        }
        return SavedNetwork(self.recall(extractor), facts)

    def _training_step(self, batch: PairBatch) -> Tensor:
        described = self._describe(self._forward, torch.cat([batch.originals, batch.copies]))
        loss = self._loss(described[: self.pairs.count], described[self.pairs.count :], batch.own_share)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._schedule.step()
        self.step += 1
        return loss.detach()

    def _loss(self, originals: Tensor, copies: Tensor, own_share: Tensor | None) -> Tensor:
        loss = nt_xent(originals, copies, self.settings.temperature, own_share)
        if self.settings.koleo:
            loss = loss + self.settings.koleo * koleo(originals)
        if self._cells:
            if self.step >= CELLS_START * self.steps:
                loss = loss + self.settings.cell_weight * self._cells.loss(originals, copies)
            self._cells.update(originals.detach())
        return loss

    @torch.no_grad()
    def _whitened(self) -> DescriptorNetwork:
        """A copy of the network, whitened on the pairs of the next steps."""
        check_finite(self.network.state_dict())
        network = deepcopy(self.network).eval()
        wanted = math.ceil(PAIRS_PER_DIMENSION * self.settings.dim / self.pairs.count)
        projected, batches = (
            [],
            min(wanted, self.steps),
        )  # limited, because with few photos it would take longer than the training
        for step in range(self.steps, self.steps + batches):
            batch = self.pairs.batch(self.pairs.squares(step), step, blend=False)
            projected.append(self._project(network, torch.cat([batch.originals, batch.copies])))
        originals, copies = (torch.cat(side) for side in zip(*(both.chunk(2) for both in projected), strict=True))
        whiten(network.head, originals, copies, self.settings.whiten)
        return network

    def _describe(self, network: Any, pixels: Tensor) -> Tensor:
        return F.normalize(self._project(network, pixels), dim=1)

    def _project(self, network: Any, pixels: Tensor) -> Tensor:
        normal = ((pixels - self._mean) / self._std).contiguous(memory_format=torch.channels_last)
        with self._autocast:
            projected: Tensor = network(normal)
        return projected.float()

    def _optimizers(self) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
        """AdamW without decay of biases and norms, and a cosine schedule with warm-up."""
        groups = []
        parts = (self.network.trunk, self.settings.lr), (self.network.head, HEAD_LR_FACTOR * self.settings.lr)
        for part, lr in parts:
            for flat in (False, True):
                weights = [weight for weight in part.parameters() if (weight.ndim < 2) == flat]
                groups.append({"params": weights, "lr": lr, "weight_decay": 0.0 if flat else WEIGHT_DECAY})
        optimizer = torch.optim.AdamW(groups, fused=self.device.type == "cuda")
        return optimizer, warmup_cosine_schedule(optimizer, self.steps)


def _plain(ranges: Ranges) -> dict[str, list[float] | None]:
    """Ranges as JSON values."""
    return {name: list(span) if span else None for name, span in ranges.items()}

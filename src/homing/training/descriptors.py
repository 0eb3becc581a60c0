"""Train a descriptor network as SSCD does: match photos and their edited copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import timm
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homing import __version__
from homing._tensors import compile_on_gpu
from homing.errors import HomingError, UnknownNameError
from homing.extractors import bundled
from homing.extractors.descriptor_network import (
    DescriptorNetwork,
    NetworkConfig,
    check_finite,
    read_network,
    trained_network,
    write_network,
)
from homing.extractors.external import pretrained
from homing.training.data import Pairs, PhotoArray
from homing.training.losses import RunningCentroids, koleo, nt_xent
from homing.training.run import SavedNetwork, Trainer, half_precision
from homing.training.settings import COUNTS, EDIT_WEIGHTS, EDITS, FAMILY_WEIGHTS, WEAK_EDITS, DescriptorSettings

HEAD_LR_FACTOR = 2.0  # the projection is new, the trunk is pretrained
WEIGHT_DECAY = 0.02
PAIRS_PER_DIMENSION = 20  # for a good estimate of the covariance of differences
RIDGE = 0.02  # of the mean variance; limits the scale of directions with little variance
CELLS_START = 0.1  # share of the steps: before, descriptors change too fast for centroids to follow


class DescriptorTrainer(Trainer):
    """The trainer of a descriptor network."""

    metric = "recall"
    views_per_photo = 2
    network: DescriptorNetwork
    batches: Pairs

    def __init__(self, photos: PhotoArray, settings: DescriptorSettings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings = settings
        network, self.config = initial_network(settings)
        network.to(device).to(memory_format=torch.channels_last)
        super().__init__(
            network,
            Pairs(photos, settings, device),
            _optimizer(network, settings.lr, device),
            settings,
            edits=EDITS,
            weak_edits=WEAK_EDITS,
            edit_weights=EDIT_WEIGHTS,
            family_weights=FAMILY_WEIGHTS,
            edit_counts=list(COUNTS),
        )
        self._cells = RunningCentroids(settings.cells, settings.dim, device) if settings.cells else None
        self._forward = compile_on_gpu(network, device)
        self._autocast = half_precision(device)
        self._mean = torch.tensor(self.config.mean, device=device)[:, None, None]
        self._std = torch.tensor(self.config.std, device=device)[:, None, None]

    def loss(self, pixels: np.ndarray) -> Tensor:
        """The contrastive loss of pairs, with entropy and cells as the settings say."""
        batch = self.batches.pairs(pixels, self.step)
        originals, copies = self._describe(self._forward, torch.cat([batch.originals, batch.copies])).chunk(2)
        loss = nt_xent(originals, copies, self.settings.temperature, batch.own_share)
        if self.settings.koleo:
            loss = loss + self.settings.koleo * koleo(originals)
        if self._cells:
            if self.step >= CELLS_START * self.steps:
                loss = loss + self.settings.cell_weight * self._cells.loss(originals, copies)
            self._cells.update(originals.detach())
        return loss

    def score(self) -> float:
        """The recall of held-out photos by the current network."""
        return self.recall(lambda pixels: self._describe(self.network, pixels))

    @torch.no_grad()
    def recall(self, describe: Callable[[Tensor], Tensor]) -> float:
        """Recall@1 of strongly edited copies among all held-out photos."""
        self.network.eval()
        described = [(describe(batch.originals), describe(batch.copies)) for batch in self.batches.held_out_pairs()]
        self.network.train()
        originals, copies = (torch.cat(each) for each in zip(*described, strict=True))
        nearest = (copies @ originals.T).argmax(dim=1)
        return float((nearest == torch.arange(len(nearest), device=nearest.device)).float().mean())

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {**super().state(), "cells": self._cells.state_dict() if self._cells else {}}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        super().restore(state)
        if self._cells:
            self._cells.load_state_dict(state["cells"])

    def write(self, path: Path) -> SavedNetwork:
        """Write the network, whitened, to a file."""
        write_network(self._whitened() if self.settings.whiten else self.network, self.config, path)
        extractor = trained_network(str(path), self.batches.device)
        facts = {
            "pairs_per_batch": self.batches.count,
            "extractor_fingerprint": extractor.fingerprint,
            "rendered_by": {"homing": __version__, "pillow": PIL.__version__},
        }
        return SavedNetwork(self.recall(extractor), facts)

    @torch.no_grad()
    def _whitened(self) -> DescriptorNetwork:
        """A copy of the network, whitened on the pairs of the next steps."""
        check_finite(self.network.state_dict())
        network = deepcopy(self.network).eval()
        wanted = math.ceil(PAIRS_PER_DIMENSION * self.settings.dim / self.batches.count)
        count = min(wanted, self.steps)  # with few photos it would take longer than the training
        projected = []
        for step in range(self.steps, self.steps + count):
            batch = self.batches.pairs(self.batches.pixels(step), step, blend=False)
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


def _optimizer(network: DescriptorNetwork, lr: float, device: torch.device) -> torch.optim.Optimizer:
    """AdamW without decay of biases and norms."""
    groups = []
    for part, part_lr in ((network.trunk, lr), (network.head, HEAD_LR_FACTOR * lr)):
        for flat in (False, True):
            weights = [weight for weight in part.parameters() if (weight.ndim < 2) == flat]
            groups.append({"params": weights, "lr": part_lr, "weight_decay": 0.0 if flat else WEIGHT_DECAY})
    return torch.optim.AdamW(groups, fused=device.type == "cuda")


def initial_network(settings: DescriptorSettings) -> tuple[DescriptorNetwork, NetworkConfig]:
    """The network that `settings.init` names, with a projection to the wanted dimension."""
    init = settings.init
    if init == "homing-1" or init.endswith(".safetensors"):
        network, config = bundled.homing_1_network() if init == "homing-1" else read_network(init)
        if config.dim != settings.dim:
            raise HomingError(f"{init} gives {config.dim}-d descriptors, got --dim {settings.dim}; leave them equal")
        return network, replace(config, size=settings.size)
    if init == "imagenet-lite0":
        trunk, weights = bundled.TRUNK, bundled.imagenet_lite0_trunk()
        mean, std = bundled.MEAN, bundled.STD
    elif init.startswith("timm:"):
        trunk = init.removeprefix("timm:")
        model = pretrained(trunk)
        data_config = timm.data.resolve_model_data_config(model)
        weights, mean, std = model.state_dict(), data_config["mean"], data_config["std"]
    else:
        known = ["homing-1", "imagenet-lite0", "timm:NAME", "FILE.safetensors"]
        raise UnknownNameError("network to start from", init, known)
    config = NetworkConfig(trunk=trunk, dim=settings.dim, size=settings.size, mean=mean, std=std)
    network = DescriptorNetwork(config)
    _require_feature_maps(network, trunk)
    network.trunk.load_state_dict(weights)
    # An orthogonal projection nearly keeps the distances of pooled features.
    torch.nn.init.orthogonal_(network.head.weight)
    torch.nn.init.zeros_(network.head.bias)
    return network, config


@torch.no_grad()
def _require_feature_maps(network: DescriptorNetwork, trunk: str) -> None:
    """Refuse a trunk whose output cannot be pooled to the features the projection expects."""
    size = timm.data.resolve_model_data_config(network.trunk)["input_size"]
    maps = network.trunk.eval()(torch.zeros(1, *size))
    if maps.ndim != 4 or maps.shape[1] != network.trunk.num_features:
        raise HomingError(f"'{trunk}' gives no feature maps to pool; choose a convolutional network such as resnet50")


@torch.no_grad()
def whiten(head: nn.Linear, originals: Tensor, copies: Tensor, power: float) -> None:
    """Fold whitening into the projection that gave these (N, D) pairs, of any length. A power of 0.5 is full whitening.

    Descriptors are compared at unit norm, so differences are measured there. The originals are also centered.
    """
    differences = nn.functional.normalize(copies, dim=1) - nn.functional.normalize(originals, dim=1)
    spread, directions = torch.linalg.eigh((differences.T @ differences).double() / len(differences))
    weights = (spread + RIDGE * spread.mean()).clamp_min(1e-12) ** -power
    change = (directions * (weights / weights.mean()) @ directions.T).to(head.weight)
    head.weight.copy_(change @ head.weight)
    head.bias.copy_(change @ (head.bias - originals.mean(dim=0)))

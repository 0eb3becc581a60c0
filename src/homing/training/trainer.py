"""The interface of trainers, and helpers that they share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from homing._io.device import supports_bfloat16

WARM_UP = 0.05
PREFETCH_THREADS = 4  # batches that are read ahead, of a hundred megabytes each


class SavedNetwork(NamedTuple):
    """A written network: its score on held-out photos, and facts for the record."""

    score: float
    facts: dict[str, Any]


class Trainer(Protocol):
    """The training of one network."""

    device: torch.device
    step: int
    steps: int
    views_per_step: int
    metric: str  # name of the score
    run_settings: dict[str, Any]  # everything that determines the result, as JSON values

    def run(self) -> Iterator[Tensor]:
        """Train from the current step to the last; yields losses without synchronizing the device."""
        ...

    def score(self) -> float:
        """The score of the network on held-out photos."""
        ...

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        ...

    def write(self, path: Path) -> SavedNetwork:
        """Write the network to a file and score that file."""
        ...


def warmup_cosine_schedule(optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    """A cosine schedule to 0 with a short warm-up."""
    warm = max(1, round(WARM_UP * steps))

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, steps - warm))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def half_precision(device: torch.device) -> torch.autocast:
    """Autocast to bfloat16 on GPUs that support it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and supports_bfloat16(device))

"""What a run asks of the network it teaches, and what all of them do alike."""

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
    """The network in a file: how well it does on held-out photos, and what a record should say of it."""

    score: float
    facts: dict[str, Any]


class Trainer(Protocol):
    """One network that is taught, step by step."""

    device: torch.device
    step: int
    steps: int
    views_per_step: int
    metric: str  # what the score is, in words
    run_settings: dict[str, Any]  # all that decides the result, as JSON gives it back

    def run(self) -> Iterator[Tensor]:
        """Teach from the present step to the last; gives the loss of each, not yet waited for."""
        ...

    def score(self) -> float:
        """How well the network does on held-out photos."""
        ...

    def state(self) -> dict[str, Any]:
        """All that a checkpoint must hold to go on from here."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        ...

    def write(self, path: Path) -> SavedNetwork:
        """Keep the network in a file; the score is that of the file."""
        ...


def warmup_cosine_schedule(optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    """A short warm-up, then a cosine to nothing."""
    warm = max(1, round(WARM_UP * steps))

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, steps - warm))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def half_precision(device: torch.device) -> torch.autocast:
    """Half precision where a GPU is made for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and supports_bfloat16(device))

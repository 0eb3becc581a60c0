"""Whitening: scale down the directions in which copies differ from their originals."""

from __future__ import annotations

import torch
from torch import Tensor, nn

RIDGE = 0.02  # of the mean variance; limits the scale of directions with little variance


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

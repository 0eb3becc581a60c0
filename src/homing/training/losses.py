"""Losses of descriptor training: contrastive, entropy, and cross-entropy over cells."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def nt_xent(originals: Tensor, copies: Tensor, temperature: float, own: Tensor | None = None) -> Tensor:
    """Contrastive loss (NT-Xent) of originals and copies, both (B, D) of unit norm.

    `own` (B,) is the share of each copy's own original; the rest is the next original. By default it is 1.
    """
    count = len(originals)
    everything = torch.cat([originals, copies])
    similarity = everything @ everything.T / temperature
    similarity = similarity.masked_fill(torch.eye(2 * count, dtype=torch.bool, device=similarity.device), float("-inf"))
    log_probabilities = F.log_softmax(similarity, dim=1)
    to_copies, to_originals = log_probabilities[:count, count:], log_probabilities[count:, :count]
    if own is None:
        return -(to_copies.diagonal() + to_originals.diagonal()).mean() / 2
    rest = 1 - own
    of_next = to_originals.roll(-1, dims=1).diagonal()  # copy i and original i + 1
    in_previous = to_copies.roll(1, dims=1).diagonal()  # original i and copy i - 1
    shared = own + rest.roll(1)  # total share of an original in the two copies that contain it
    forth = own * to_originals.diagonal() + rest * of_next
    back = (own * to_copies.diagonal() + rest.roll(1) * in_previous) / shared
    return -(forth + back).mean() / 2


def koleo(descriptors: Tensor) -> Tensor:
    """SSCD's differential entropy: minus the mean log distance to the nearest other; (B, D) of unit norm."""
    with torch.no_grad():
        similarity = descriptors @ descriptors.T
        nearest = similarity.fill_diagonal_(-2).argmax(dim=1)
    distances: Tensor = torch.linalg.vector_norm(descriptors - descriptors[nearest], dim=1)
    return -distances.clamp(min=1e-8).log().mean()


class RunningCentroids(nn.Module):
    """Centroids that follow the descriptors during training, like those of a coarse quantizer.

    A copy in another cell than its original is not found with one probe, however near the two are.
    """

    DECAY = 0.99  # a centroid is the mean of about the last hundred batches, since the network changes
    MIN_SHARE = 0.1  # of an even share; a centroid with less is moved to a descriptor
    TEMPERATURE = 0.05

    _sums: Tensor
    _counts: Tensor

    def __init__(self, count: int, dim: int, device: torch.device) -> None:
        super().__init__()
        self.register_buffer("_sums", torch.zeros(count, dim, device=device))
        self.register_buffer("_counts", torch.zeros(count, device=device))

    def loss(self, originals: Tensor, copies: Tensor) -> Tensor:
        """Cross-entropy of originals and copies over all cells; the target is the cell of the original."""
        centroids = self._centroids()
        with torch.no_grad():
            own_cells = _negative_squared_distances(originals, centroids).argmax(dim=1)
        both = torch.cat([originals, copies])
        return F.cross_entropy(_negative_squared_distances(both, centroids) / self.TEMPERATURE, own_cells.repeat(2))

    @torch.no_grad()
    def update(self, originals: Tensor) -> None:
        """One step of k-means on these descriptors, on a running mean."""
        cells = _negative_squared_distances(originals, self._centroids()).argmax(dim=1)
        self._sums.mul_(self.DECAY).index_add_(0, cells, originals)
        self._counts.mul_(self.DECAY).index_add_(0, cells, torch.ones_like(originals[:, 0]))
        share = self._counts.mean()
        starved = self._counts < self.MIN_SHARE * share
        # Any descriptors are fine; the choice is deterministic, so that a resumed run gives the same result.
        others = originals[torch.arange(len(starved), device=originals.device) % len(originals)]
        self._sums = torch.where(starved[:, None], others * share, self._sums)
        self._counts = torch.where(starved, share, self._counts)

    def _centroids(self) -> Tensor:
        return self._sums / self._counts.clamp(min=1e-6)[:, None]


def _negative_squared_distances(descriptors: Tensor, centroids: Tensor) -> Tensor:
    """Negative squared distances (B, K), up to a term that all cells share."""
    return 2 * descriptors @ centroids.T - centroids.square().sum(dim=1)

"""What a bench searches in: some photos among many strangers, as codes in an index and as full descriptors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from homing.codebooks import Codebook
from homing.collection import Match
from homing.evaluation.retrieval import Probes, Search
from homing.indexes import FaissIndex

# The two sides of the table of distances that is held at any one time: a quarter of a gigabyte.
_REFERENCES_AT_ONCE, _QUERIES_AT_ONCE = 16_384, 4_096


class References:
    """Photos, the descriptors (P, D) of their originals, and descriptors (N, D) of strangers, in this order."""

    def __init__(
        self,
        codebook: Codebook,
        sources: Sequence[str],
        originals: Tensor,
        strangers: np.ndarray,
        device: torch.device,
    ) -> None:
        self._sources, self._originals, self._strangers = sources, originals, strangers
        self._device = device
        self._index = FaissIndex(codebook)
        for start, rows in self._parts():
            self._index.add(codebook.encode(rows), np.arange(start, start + len(rows)))

    def search(self, probes: Probes) -> Search:
        """The way to the nearest reference of each of (B, D) descriptors; `exact` compares with every descriptor."""

        def nearest(descriptors: Tensor) -> list[list[Match]]:
            if probes == "exact":
                found = [self._nearest(some) for some in torch.split(descriptors, _QUERIES_AT_ONCE)]
                distances, numbers = (torch.cat(each).tolist() for each in zip(*found, strict=True))
            else:
                distances, numbers = (each[:, 0].tolist() for each in self._index.search(descriptors, 1, probes))
            return [self._matches(number, distance) for number, distance in zip(numbers, distances, strict=True)]

        return nearest

    def _nearest(self, descriptors: Tensor) -> tuple[Tensor, Tensor]:
        """The distance (B,) and number (B,) of the nearest reference."""
        queries = descriptors.to(self._device)
        best = torch.full((len(queries),), torch.inf, device=self._device)
        numbers = torch.full((len(queries),), -1, device=self._device)
        for start, rows in self._parts():
            distances, places = torch.cdist(queries, rows.to(self._device)).min(dim=1)
            nearer = distances < best
            best = torch.where(nearer, distances, best)
            numbers = torch.where(nearer, start + places, numbers)
        return best.cpu(), numbers.cpu()

    def _parts(self) -> Iterator[tuple[int, Tensor]]:
        """All descriptors, part by part, each with the number of its first."""
        yield 0, self._originals
        for start in range(0, len(self._strangers), _REFERENCES_AT_ONCE):
            rows = np.asarray(self._strangers[start : start + _REFERENCES_AT_ONCE], dtype=np.float32)
            yield len(self._originals) + start, torch.from_numpy(rows)

    def _matches(self, number: int, distance: float) -> list[Match]:
        if number < 0:
            return []
        if number < len(self._sources):
            return [Match(self._sources[number], distance, "passive")]
        return [Match("", distance, "background")]

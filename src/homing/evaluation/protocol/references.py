"""What a bench searches in: some photos among many strangers, as codes in an index and as full descriptors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import faiss
import numpy as np
import torch
from torch import Tensor

from homing.codebooks import Codebook
from homing.indexes import FaissIndex, compare_again

Probes = int | Literal["exact"]

# The two sides of the table of distances that is held at any one time: a quarter of a gigabyte.
_REFERENCES_AT_ONCE, _QUERIES_AT_ONCE = 16_384, 4_096
_TIMED = 200


class Nearest(NamedTuple):
    """The nearest references of some queries, nearest first: distances (Q, k) and ids (Q, k), -1 where there are none.

    Ids below the number of photos are photos, in their order; the others are strangers.
    """

    distances: np.ndarray
    ids: np.ndarray

    def first(self) -> Nearest:
        """The nearest one of each query alone, without the memory that the others take."""
        return Nearest(self.distances[:, :1].copy(), self.ids[:, :1].copy())


class Milliseconds(NamedTuple):
    """Time per search, one query at a time on one core: through homing, and by FAISS alone in the same index."""

    homing: float
    faiss: float


class References:
    """The descriptors (P, D) of photos as they were, and those (N, D) of strangers, in this order."""

    def __init__(self, codebook: Codebook, originals: Tensor, strangers: np.ndarray, device: torch.device) -> None:
        self._originals, self._strangers, self._device = originals, strangers, device
        self._codebook = codebook
        self._index = FaissIndex(codebook)
        for start, rows in self._parts():
            self._index.add(codebook.encode(rows), np.arange(start, start + len(rows)))

    def __len__(self) -> int:
        return len(self._originals) + len(self._strangers)

    @property
    def bytes_per_vector(self) -> int:
        """What the index keeps of one reference, but for its id and its cell."""
        return self._index.code_size

    def search(
        self,
        descriptors: np.ndarray,
        k: int,
        probes: Probes | None = None,
        *,
        margin: float | None = None,
        rerank: int | None = None,
    ) -> Nearest:
        """The k nearest references of (Q, D) descriptors; `exact` compares with every descriptor.

        Queries may be described T times, (Q, T, D); `margin` chooses cells in place of `probes`; the `rerank` nearest
        are compared again, by their descriptors.
        """
        k = min(k, len(self))

        def nearest(some: Tensor) -> tuple[np.ndarray, np.ndarray]:
            if probes == "exact":
                return self._nearest(some, k)
            distances, ids = self._index.search(some, min(rerank or k, len(self)), probes, margin)
            if rerank is not None:
                queries = some.view(len(some), -1, some.shape[-1]).numpy()
                distances, ids = compare_again(queries, distances, ids, self._descriptors)
            return distances[:, :k], ids[:, :k]

        distances, ids = zip(*map(nearest, _parts_of(descriptors)), strict=True)
        return Nearest(np.concatenate(distances), np.concatenate(ids))

    def looked_at(self, descriptors: np.ndarray, probes: int | None = None, margin: float | None = None) -> np.ndarray:
        """How many codes (Q,) such a search compares."""
        return np.concatenate([self._index.looked_at(some, probes, margin) for some in _parts_of(descriptors)])

    def milliseconds(self, descriptors: np.ndarray, k: int, probes: int) -> Milliseconds:
        """How long the search for one of these (Q, D) descriptors takes."""
        queries = torch.from_numpy(np.array(descriptors[:_TIMED], dtype=np.float32))
        turned = self._codebook.turn(queries)
        raw: Any = self._index.faiss
        with _one_core():
            ours = _milliseconds(lambda place: self._index.search(queries[place : place + 1], k, probes), len(queries))
            theirs = _milliseconds(lambda place: raw.search(turned[place : place + 1], k), len(queries))
        return Milliseconds(ours, theirs)

    def milliseconds_with(
        self, descriptors: np.ndarray, k: int, *, probes: int | None, margin: float | None, rerank: int | None
    ) -> float:
        """The same, through homing, of a search with options."""
        queries = descriptors[:_TIMED]
        with _one_core():
            return _milliseconds(
                lambda place: self.search(queries[place : place + 1], k, probes, margin=margin, rerank=rerank),
                len(queries),
            )

    def _descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        photos = len(self._originals)
        return {
            number: (self._originals[number].numpy() if number < photos else self._strangers[number - photos])[None]
            for number in ids.tolist()
        }

    def _nearest(self, descriptors: Tensor, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and ids (B, k) of the nearest references, each compared with every query."""
        queries = descriptors.to(self._device)
        best = torch.full((len(queries), k), torch.inf, device=self._device)
        ids = torch.full((len(queries), k), -1, device=self._device)
        for start, rows in self._parts():
            distances, places = torch.cdist(queries, rows.to(self._device)).topk(min(k, len(rows)), largest=False)
            candidates = torch.cat([best, distances], dim=1), torch.cat([ids, start + places], dim=1)
            best, order = candidates[0].topk(k, largest=False)
            ids = candidates[1].gather(1, order)
        return best.cpu().numpy(), ids.cpu().numpy()

    def _parts(self) -> Iterator[tuple[int, Tensor]]:
        """All descriptors, part by part, each with the number of its first."""
        first = 0
        for some in (self._originals.numpy(), self._strangers):
            for start in range(0, len(some), _REFERENCES_AT_ONCE):
                rows = np.array(some[start : start + _REFERENCES_AT_ONCE], dtype=np.float32)
                yield first + start, torch.from_numpy(rows)
            first += len(some)


def _parts_of(descriptors: np.ndarray) -> Iterator[Tensor]:
    for start in range(0, len(descriptors), _QUERIES_AT_ONCE):
        yield torch.from_numpy(np.array(descriptors[start : start + _QUERIES_AT_ONCE], dtype=np.float32))


@contextmanager
def _one_core() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _milliseconds(search: Callable[[int], object], count: int) -> float:
    """The median over the queries; the first ones only warm the caches."""
    taken = []
    for place in range(count):
        started = time.perf_counter()
        search(place)
        taken.append(time.perf_counter() - started)
    return 1000 * float(np.median(taken))

"""What a bench searches: photos among distractors, as codes in an index and as full descriptors; or a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import faiss
import numpy as np
import torch
from torch import Tensor

from homing import indexes
from homing.bench.data import DescriptorSet, ReleasedPhoto, uncached_copies
from homing.bench.scores import rank_of
from homing.codebooks import Codebook
from homing.collection import Collection, SearchResult
from homing.edits import PAPER

Probes = int | Literal["exact"]

# Rows and columns of the distance matrix held in memory at a time: a quarter of a gigabyte.
_REFERENCES_AT_ONCE, _QUERIES_AT_ONCE = 16_384, 4_096
_MAX_TIMED_QUERIES = 200


class Neighbors(NamedTuple):
    """The nearest references of some queries, nearest first: distances (Q, k) and ids (Q, k), -1 where there are none.

    Ids below the number of photos are photos, in their order; the others are distractors.
    """

    distances: np.ndarray
    ids: np.ndarray

    def top1(self) -> Neighbors:
        """The nearest reference of each query, copied so that the rest can be freed."""
        return Neighbors(self.distances[:, :1].copy(), self.ids[:, :1].copy())

    def nearest(self, query: int, names: Sequence[str]) -> list[str]:
        """Name and distance of the nearest reference: no name for a distractor, both empty if nothing was found."""
        number = int(self.ids[query, 0])
        name = names[number] if 0 <= number < len(names) else ""
        return [name, "" if number < 0 else f"{self.distances[query, 0]:.5f}"]


class Milliseconds(NamedTuple):
    """Milliseconds per search, one query at a time on one core: with homing, and with FAISS alone on the same index."""

    homing: float
    faiss: float


class References:
    """The original photos, by (P, D) descriptors, followed by the distractors.

    Distractors of which only codes are known enter the index by these, and every other comparison by the descriptors
    decoded from them.
    """

    def __init__(self, codebook: Codebook, originals: Tensor, distractors: DescriptorSet, device: torch.device) -> None:
        self._originals, self._distractors, self._device = originals, distractors.descriptors, device
        self._codebook = codebook
        self._index = indexes.FaissIndex(codebook)
        photos = len(originals)
        for start, rows in self._chunks():
            # Decoding and encoding again can end in another cell, so known codes are added as they are.
            known = None if distractors.codes is None or start < photos else distractors.codes[start - photos :]
            codes = codebook.encode(rows) if known is None else known[: len(rows)]
            self._index.add(codes, np.arange(start, start + len(rows)))

    def __len__(self) -> int:
        return len(self._originals) + len(self._distractors)

    @property
    def bytes_per_vector(self) -> int:
        """Bytes that the index stores per reference, without its id and its cell."""
        return self._index.code_size

    def search(
        self,
        descriptors: np.ndarray,
        k: int,
        probes: Probes | None = None,
        *,
        probe_radius: float | None = None,
        rerank: int | None = None,
    ) -> Neighbors:
        """The k nearest references of (Q, D) descriptors; `exact` compares with every descriptor.

        Queries may have T variants, (Q, T, D). `probe_radius` selects cells instead of `probes`. `rerank` is the number
        of nearest references to compare again by their full descriptors.
        """
        k = min(k, len(self))

        def nearest(chunk: Tensor) -> tuple[np.ndarray, np.ndarray]:
            if probes == "exact":
                return self._nearest(chunk, k)
            distances, ids = self._index.search(chunk, min(rerank or k, len(self)), probes, probe_radius)
            if rerank is not None:
                queries = chunk.view(len(chunk), -1, chunk.shape[-1]).numpy()
                distances, ids = indexes.rerank(queries, distances, ids, self._descriptors)
            return distances[:, :k], ids[:, :k]

        found = map(nearest, _query_chunks(descriptors))
        return Neighbors(*map(np.concatenate, zip(*found, strict=True)))

    def codes_scanned(
        self, descriptors: np.ndarray, probes: int | None = None, probe_radius: float | None = None
    ) -> np.ndarray:
        """The number of codes (Q,) that a search compares with each query."""
        return np.concatenate(
            [self._index.codes_scanned(chunk, probes, probe_radius) for chunk in _query_chunks(descriptors)]
        )

    def search_ms(
        self,
        descriptors: np.ndarray,
        k: int,
        probes: int | None,
        *,
        probe_radius: float | None = None,
        rerank: int | None = None,
    ) -> float:
        """Milliseconds per search for one of these descriptors, with homing."""
        queries = descriptors[:_MAX_TIMED_QUERIES]
        return _milliseconds(
            lambda i: self.search(queries[i : i + 1], k, probes, probe_radius=probe_radius, rerank=rerank), len(queries)
        )

    def index_ms(self, descriptors: np.ndarray, k: int, probes: int) -> Milliseconds:
        """Milliseconds per search of the index alone for one of these (Q, D) descriptors."""
        queries = torch.from_numpy(np.array(descriptors[:_MAX_TIMED_QUERIES], dtype=np.float32))
        transformed = self._codebook.transform(queries)
        raw: Any = self._index.faiss
        return Milliseconds(
            _milliseconds(lambda i: self._index.search(queries[i : i + 1], k, probes), len(queries)),
            _milliseconds(lambda i: raw.search(transformed[i : i + 1], k), len(queries)),
        )

    def _descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        photos = len(self._originals)
        return {
            number: (self._originals[number].numpy() if number < photos else self._distractors[number - photos])[None]
            for number in ids.tolist()
        }

    def _nearest(self, descriptors: Tensor, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and ids (B, k) of the nearest references, each compared with every query."""
        queries = descriptors.to(self._device)
        best = torch.full((len(queries), k), torch.inf, device=self._device)
        ids = torch.full((len(queries), k), -1, device=self._device)
        for start, rows in self._chunks():
            distances, rows_found = torch.cdist(queries, rows.to(self._device)).topk(min(k, len(rows)), largest=False)
            candidates = torch.cat([best, distances], dim=1), torch.cat([ids, start + rows_found], dim=1)
            best, order = candidates[0].topk(k, largest=False)
            ids = candidates[1].gather(1, order)
        return best.cpu().numpy(), ids.cpu().numpy()

    def _chunks(self) -> Iterator[tuple[int, Tensor]]:
        """All descriptors in chunks, each with the id of its first row."""
        first = 0
        for chunk in (self._originals.numpy(), self._distractors):
            for start in range(0, len(chunk), _REFERENCES_AT_ONCE):
                rows = np.array(chunk[start : start + _REFERENCES_AT_ONCE], dtype=np.float32)
                yield first + start, torch.from_numpy(rows)
            first += len(chunk)


@dataclass(frozen=True)
class CollectionSearch:
    """Searches of a collection for copies of P photos with E edits: the matches of each copy, and ranks (P, E)."""

    matches: list[SearchResult]
    ranks: np.ndarray

    @property
    def correct(self) -> np.ndarray:
        """Whether the nearest match of each copy is its photo: (P, E)."""
        return np.asarray(self.ranks == 0)


def search_collection(
    collection: Collection, copies: Tensor, photos: Sequence[str], *, k: int, probes: int | None
) -> CollectionSearch:
    """Search for the (P, E, D) copies of these photos of a collection; None is its default number of probes."""
    matches = collection.search_descriptors(copies.flatten(0, 1), k=k, probes=probes)
    numbers = {photo: number for number, photo in enumerate(photos)}
    ids = np.full((len(matches), k), -1)
    for query, found in enumerate(matches):
        for rank, match in enumerate(found):
            ids[query, rank] = numbers.get(match.photo, len(photos))  # distractors and other references are wrong
    ranks = rank_of(ids, np.arange(len(photos)).repeat(copies.shape[1]))
    return CollectionSearch(matches, ranks.reshape(copies.shape[:2]))


def search_copies(
    collection: Collection, released: Sequence[ReleasedPhoto], probes: Sequence[int | None], advance: Callable[[], None]
) -> dict[int | None, CollectionSearch]:
    """Edit each of these files in all ways and search for the copies, with each number of probes."""
    copies = uncached_copies(collection.extractor, released, PAPER, advance)
    photos = [photo.source for photo in released]
    return {each: search_collection(collection, copies, photos, k=3, probes=each) for each in probes}


def _query_chunks(descriptors: np.ndarray) -> Iterator[Tensor]:
    for start in range(0, len(descriptors), _QUERIES_AT_ONCE):
        yield torch.from_numpy(np.array(descriptors[start : start + _QUERIES_AT_ONCE], dtype=np.float32))


@contextmanager
def _single_thread() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _milliseconds(search: Callable[[int], object], count: int) -> float:
    """The median over the queries, on one core: the first searches, with cold caches, do not affect it."""
    seconds = []
    with _single_thread():
        for i in range(count):
            started = time.perf_counter()
            search(i)
            seconds.append(time.perf_counter() - started)
    return 1000 * float(np.median(seconds))


def format_probes(probes: Probes, has_cells: bool) -> str:
    """The number of probes as a table cell; a dash for an index without cells."""
    return str(probes) if has_cells or probes == "exact" else "–"


def describe_probes(probes: Probes, has_cells: bool) -> str:
    """The number of probes as words."""
    if probes == "exact":
        return "exact"
    if not has_cells:
        return "no cells"
    return "1 probe" if probes == 1 else f"{probes} probes"

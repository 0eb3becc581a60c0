"""Search of a collection: its options and results, variants of queries, re-ranking, and false-match probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Literal, overload

import numpy as np
import torch
from torch import Tensor

from homing._io.paths import Location
from homing.codebooks import Codebook
from homing.collection.references import State
from homing.collection.storage import Storage
from homing.collection.storage.layout import FIRST_DISTRACTOR_ID
from homing.errors import CollectionError, HomingError, NotFoundError, check_type
from homing.extractors import Extractor, describe_images
from homing.indexes import Index, full_distances
from homing.photo import MemoryPhoto
from homing.photo.inputs import load_pixels

VARIANTS = 5
_QUERIES = 16  # photos per batch of the extractor
_SAMPLE = 1_000  # references in the sample that the density ratio is measured with
_REMEASURE_FACTOR = 1.1  # a collection that grows or shrinks by this factor is measured again
DEFAULT_RERANK = 100  # number of nearest references that are re-ranked by default
Verdict = Literal["match", "possible", "none"]
VERDICT_TEXTS: dict[Verdict, str] = {"match": "match", "possible": "possible match", "none": "no match"}
MATCH_PROBABILITY = 1e-3
POSSIBLE_PROBABILITY = 0.3


def verdict_of(false_match_probability: float) -> Verdict:
    """The verdict for a false-match probability."""
    if false_match_probability <= MATCH_PROBABILITY:
        return "match"
    return "possible" if false_match_probability <= POSSIBLE_PROBABILITY else "none"


@dataclass(frozen=True, kw_only=True)
class Match:
    """A reference near a query: its source file and its distance from the query's descriptor.

    `compared` says what the distance was measured to: the reference's code or, where matches were re-ranked, its full
    descriptor. `id` identifies the reference for good: ids are never reused. Distractors have none.
    `false_match_probability` is the probability that the nearest of all references comes this near to a photo that is
    unrelated to all of them.
    """

    photo: str
    distance: float
    state: State | Literal["distractor"]
    compared: Literal["code", "descriptor"] = "code"
    id: int | None = None
    false_match_probability: float = 1.0

    @property
    def verdict(self) -> Verdict:
        """Whether the query is a copy of this reference; "none" for distractors."""
        return "none" if self.state == "distractor" else verdict_of(self.false_match_probability)


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """What a search does: how many references it searches, in how many cells, and how many it re-ranks.

    Either `probes` or `probe_radius` chooses the cells; where a codebook has none, `cells` and `probes` are None.
    """

    references: int
    cells: int | None
    probes: int | None
    probe_radius: float | None
    rerank: int
    variants: bool = False
    """Whether quarter turns and the mirror image of the query are searched as well."""

    def __str__(self) -> str:
        searched = "every code"
        if self.probe_radius is not None:
            searched = f"cells within a probe radius of {self.probe_radius:g}"
        elif self.cells is not None:
            searched = f"{'all' if self.probes == self.cells else f'{self.probes:,} of'} {self.cells:,} cells"
        reranked = f", the nearest {self.rerank:,} re-ranked by descriptors" if self.rerank else ""
        return f"{self.references:,} references, {searched}{reranked}{', in five variants' * self.variants}"


@dataclass(frozen=True, kw_only=True)
class SearchResult(Sequence[Match]):
    """The matches of one query, the least likely to be false first, and what the search did.

    A sequence of its matches: iterate over it, index it, ask for its length. It is true if there are any matches,
    whatever their verdict.
    """

    matches: tuple[Match, ...]
    settings: SearchSettings
    query: str | None = None
    """The name of the photo; None if descriptors were searched for."""

    @property
    def best(self) -> Match | None:
        """The first match that is a reference, not a distractor; None if there is none."""
        return next((match for match in self.matches if match.state != "distractor"), None)

    @property
    def verdict(self) -> Verdict:
        """Whether the query is a copy of a reference: the verdict of the best match."""
        return "none" if self.best is None else self.best.verdict

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...

    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        return list(self.matches[index]) if isinstance(index, slice) else self.matches[index]

    def __iter__(self) -> Iterator[Match]:
        return iter(self.matches)

    def __len__(self) -> int:
        return len(self.matches)


def format_probability(false_match_probability: float) -> str:
    """A probability as text with two significant figures: "1 in 40,000"."""
    if false_match_probability >= 0.995:
        return "over 99 in 100"
    if false_match_probability >= 0.095:
        return f"{100 * false_match_probability:.0f} in 100"
    if false_match_probability < 1e-12:
        return "less than 1 in 10¹²"
    return f"1 in {float(f'{1 / false_match_probability:.2g}'):,.0f}"


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of `Collection.search`, as they were given."""

    k: int = 10
    probes: int | None = None
    probe_radius: float | None = None
    variants: bool = False
    rerank: int | None = None
    max_false_match: float | None = None

    def __post_init__(self) -> None:
        check_type("k", self.k, "a whole number")
        for name in ("probes", "rerank", "probe_radius", "max_false_match"):
            if (value := getattr(self, name)) is not None:
                check_type(name, value, "a whole number" if name in ("probes", "rerank") else "a number")
        if self.k < 1 or (self.probes is not None and self.probes < 1):
            raise HomingError(f"k and probes must be at least 1, got {self.k} and {self.probes}")
        if self.rerank and self.rerank < self.k:
            raise HomingError(f"rerank must be at least k ({self.k}), got {self.rerank}")
        if self.max_false_match is not None and not 0 < self.max_false_match <= 1:
            raise HomingError(f"max_false_match must be above 0 and at most 1, got {self.max_false_match:g}")


def check_descriptors(descriptors: Tensor, dim: int) -> None:
    """Raise HomingError if these are not (B, dim) or (B, T, dim)."""
    if not isinstance(descriptors, Tensor) or descriptors.ndim not in (2, 3) or descriptors.shape[-1] != dim:
        got = tuple(descriptors.shape) if hasattr(descriptors, "shape") else type(descriptors).__name__
        raise HomingError(f"descriptors are a tensor of shape (B, {dim}) or (B, T, {dim}), got {got}")


def describe_queries(
    photos: Sequence[Location | MemoryPhoto], extractor: Extractor, *, variants: bool
) -> Iterator[tuple[list[str], Tensor]]:
    """Names and descriptors (B, T, D) of photos, batch by batch; with `variants` T is 5, otherwise 1."""
    for start in range(0, len(photos), _QUERIES):
        batch = photos[start : start + _QUERIES]
        inputs = [extractor.resize(load_pixels(photo)) for photo in batch]
        images = [each for image in inputs for each in (query_variants(image) if variants else [image])]
        names = [photo.name if isinstance(photo, MemoryPhoto) else str(photo) for photo in batch]
        yield names, describe_images(extractor, images).view(len(batch), len(images) // len(batch), -1)


def query_variants(network_input: Tensor) -> list[Tensor]:
    """A (3, S, S) input unchanged, in its three other quarter turns, and mirrored."""
    # Mirrored turns would cost three more passes of the network. A search of several cells finds mirrored and turned
    # copies without them; with one probe they add only a sixth of the recall that these five variants add.
    return [*(torch.rot90(network_input, number, (1, 2)) for number in range(4)), network_input.flip(2)]


def search_settings(index: Index, codebook: Codebook, options: SearchOptions) -> SearchSettings:
    """Complete the search options with defaults for the size of the collection."""
    probes, rerank = options.probes, options.rerank
    if rerank is None:  # explicit cells turn the default re-ranking off
        rerank = max(options.k, DEFAULT_RERANK) if probes is None and options.probe_radius is None else 0
    cells = codebook.quantizer.ivf.nlist if codebook.has_cells else None
    if cells is None:
        probes = None
    elif options.probe_radius is None:
        probes = min(probes or index.default_nprobe(), cells)
    return SearchSettings(
        references=len(index),
        cells=cells,
        probes=probes,
        probe_radius=options.probe_radius,
        rerank=rerank,
        variants=options.variants,
    )


class Searcher:
    """Searches the references of a storage. Thread-safe."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._lock = storage, Lock()
        self._density_ratio, self._measured_among = 1.0, 0  # number of references at the last measurement

    def density_ratio(self, index: Index) -> float:
        """How many times as often references lie near each other as the unrelated photos that the codebook knows.

        It is measured on first use and again when the collection changes in size.
        """
        storage = self._storage
        with self._lock:
            references = len(index) - len(storage.parts.distractor_ids)
            if self._measured_among / _REMEASURE_FACTOR <= references <= self._measured_among * _REMEASURE_FACTOR:
                return self._density_ratio
            chosen = index.sample_ids(_SAMPLE, below=FIRST_DISTRACTOR_ID)
            try:
                found = storage.descriptors(chosen)
                sample = np.array([found[each][0] for each in chosen.tolist() if each in found], dtype=np.float32)
                self._density_ratio = storage.codebook.null_distribution.density_ratio(sample)
            except (ValueError, TypeError) as error:  # from NumPy: descriptors of another length than the codebook's
                raise _damaged(storage) from error
            self._measured_among = references
            return self._density_ratio

    def search(self, descriptors: Tensor, options: SearchOptions) -> list[SearchResult]:
        """The nearest references of each of (B, D) or (B, T, D) descriptors, the least likely to be false first.

        Searches again if a reference that was found is removed before its source is looked up.
        """
        storage, repaired = self._storage, False
        while True:
            revision = storage.revision
            try:
                with storage.searching():
                    return self._search(storage.index(), descriptors, options)
            except NotFoundError:
                if storage.revision == revision:
                    if repaired or not storage.drop_removed_from_index():
                        raise
                    repaired = True

    def _search(self, index: Index, descriptors: Tensor, options: SearchOptions) -> list[SearchResult]:
        storage = self._storage
        settings = search_settings(index, storage.codebook, options)
        distances, ids = index.search(descriptors, settings.rerank or options.k, settings.probes, settings.probe_radius)
        queries = (descriptors if descriptors.ndim == 3 else descriptors[:, None]).numpy()
        comparisons = settings.references * queries.shape[1]
        counts = np.zeros(ids.shape, dtype=int)
        if settings.rerank:
            exact, counts = _descriptor_distances(storage, queries, ids)
            distances = np.where(counts > 0, exact, distances)
        is_reranked, probabilities = counts > 0, np.empty(ids.shape)
        probability = storage.codebook.null_distribution.false_match_probability
        probabilities[~is_reranked] = probability("code", distances[~is_reranked], comparisons)
        if is_reranked.any():
            density_ratio = self.density_ratio(index)
            by_descriptor = probability("descriptor", distances[is_reranked], comparisons, density_ratio)
            probabilities[is_reranked] = by_descriptor
        # A code is farther from its own photo than a descriptor is, so distances to the two are not comparable, but
        # probabilities are. Distances break ties. Empty results (negative ids) come last.
        order = np.lexsort((distances, probabilities, ids < 0))[:, : options.k]
        # An activated photo has two or more descriptors. An unrelated query can match any of them by accident, so the
        # probability is multiplied by their number. The order is already fixed and does not change.
        probabilities = np.minimum(np.maximum(counts, 1) * probabilities, 1)
        ids, distances, is_reranked, probabilities = (
            np.take_along_axis(each, order, 1) for each in (ids, distances, is_reranked, probabilities)
        )
        limit = options.max_false_match
        kept = ids >= 0 if limit is None else (ids >= 0) & (probabilities <= limit)
        known = storage.sources_and_states(np.unique(ids[kept & (ids < FIRST_DISTRACTOR_ID)]).tolist())
        found = (each.tolist() for each in (kept, ids, distances, is_reranked, probabilities))
        return [
            SearchResult(
                matches=tuple(_match(storage, known, *each) for is_kept, *each in zip(*row, strict=True) if is_kept),
                settings=settings,
            )
            for row in zip(*found, strict=True)
        ]


def _descriptor_distances(storage: Storage, queries: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distances (B, N) of queries to the stored descriptors, and the number of these per reference (B, N)."""
    try:
        exact, counts = full_distances(queries, ids, storage.descriptors)
    except (ValueError, TypeError) as error:  # from NumPy: descriptors of a different length than the queries
        raise _damaged(storage) from error
    if np.isnan(exact).any():
        raise _damaged(storage)
    return exact, counts


def _damaged(storage: Storage) -> CollectionError:
    path = storage.path
    return CollectionError(f"{path} holds descriptors of another network; repair it with: homing check {path} --repair")


def _match(
    storage: Storage,
    known: Mapping[int, tuple[str, State]],
    number: int,
    distance: float,
    is_reranked: bool,
    probability: float,
) -> Match:
    if number >= FIRST_DISTRACTOR_ID:
        assert storage.distractors is not None
        name = storage.distractors.name(number - FIRST_DISTRACTOR_ID)
        return Match(photo=name, distance=distance, state="distractor", false_match_probability=probability)
    source, state = known[number]
    return Match(
        photo=source,
        distance=distance,
        state=state,
        compared="descriptor" if is_reranked else "code",
        id=number,
        false_match_probability=probability,
    )

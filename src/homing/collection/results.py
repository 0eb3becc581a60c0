"""Results of a search: matches, what the search did, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from homing.collection.references import State

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

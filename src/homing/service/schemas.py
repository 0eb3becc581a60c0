"""Schemas of the service's JSON answers, as in its OpenAPI description."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from homing import collection
from homing.collection.results import Verdict, format_probability
from homing.collection.uploads import display_name
from homing.service.problems import ProblemDetails


def thumbnail_url(number: int | None) -> str | None:
    """The address of a reference's thumbnail; None for distractors."""
    return None if number is None else f"/v1/photos/{number}/thumbnail"


def to_quality(psnr: float | None, ssim: float | None, linf: float | None) -> Quality:
    """Convert a quality; JSON has no infinity, so an infinite PSNR becomes null."""
    assert psnr is not None and ssim is not None and linf is not None
    return Quality(psnr=psnr if math.isfinite(psnr) else None, ssim=ssim, linf=linf)


class StrictModel(BaseModel):
    """Base of all answers: fields that are not declared are rejected."""

    model_config = ConfigDict(extra="forbid")


class Match(StrictModel):
    """A reference near a query. Distances: smaller is closer."""

    photo: str = Field(description="File name of the reference.")
    id: int | None = Field(description="Id of the reference; null for distractors.")
    distance: float
    compared: Literal["code", "descriptor"] = Field(
        description="What the distance was measured to: the code in the index, or the full descriptor."
    )
    state: Literal["passive", "activated", "unchanged", "distractor"]
    false_match_probability: float = Field(
        description="Probability that a photo related to none of the references has a match this near."
    )
    false_match_text: str = Field(description='The false-match probability in words, such as "1 in 40,000".')
    verdict: Verdict
    thumbnail: str | None

    @classmethod
    def from_match(cls, match: collection.Match) -> Match:
        """Convert a match of the library."""
        return cls(
            photo=display_name(match.photo),
            id=match.id,
            distance=match.distance,
            compared=match.compared,
            state=match.state,
            false_match_probability=match.false_match_probability,
            false_match_text=format_probability(match.false_match_probability),
            verdict=match.verdict,
            thumbnail=thumbnail_url(match.id),
        )


class SearchSettings(StrictModel):
    """What the search did: number of references, cells probed, matches re-ranked by full descriptors."""

    references: int
    cells: int | None
    probes: int | None
    probe_radius: float | None
    rerank: int
    variants: bool


class SearchTimings(StrictModel):
    """Milliseconds per stage; the sum over photos where several were searched for."""

    decode: float
    network: float
    search: float


class QueryResult(StrictModel):
    """The verdict on one photo, its nearest references, and what the search did."""

    query: str = Field(description="File name of the photo searched for.")
    verdict: Verdict = Field(
        description='Verdict of the best match: "match" up to a false-match probability of 0.001, "possible" up to 0.3.'
    )
    matches: list[Match]
    search: SearchSettings

    @classmethod
    def from_result(cls, query: str, result: collection.SearchResult) -> QueryResult:
        """Convert a result of the library."""
        return cls(
            query=query,
            verdict=result.verdict,
            matches=[Match.from_match(match) for match in result],
            search=SearchSettings(**vars(result.settings)),
        )


class SearchResponse(QueryResult):
    """The result of one photo."""

    milliseconds: SearchTimings


class QueryProblem(StrictModel):
    """Why one of several photos was not searched for."""

    query: str
    problem: ProblemDetails


class BatchSearchResponse(StrictModel):
    """The results of several photos, in the order of the request."""

    results: list[QueryResult | QueryProblem]
    milliseconds: SearchTimings


class PhotoOutcome(StrictModel):
    """Outcome of one photo: the id of its reference, or the problem if it failed."""

    photo: str
    id: int | None
    state: Literal["added", "known", "activated", "unchanged", "failed"]
    problem: str | None = None
    bytes_before: int | None = Field(default=None, description="Size of the photo's file, if it was activated.")
    bytes_after: int | None = Field(default=None, description="Size of the released file, if there is one.")
    notes: list[str] = Field(default=[], description="What was written differently than in the photo's file.")


class AddResponse(StrictModel):
    """The outcome of each photo, in the order of the request."""

    outcomes: list[PhotoOutcome]


class Quality(StrictModel):
    """Difference of a released file from its original; `psnr` is null if the two are equal."""

    psnr: float | None
    ssim: float
    linf: float


class Release(StrictModel):
    """One released file of a reference; `time` is in UTC."""

    photo: str
    state: Literal["activated", "unchanged"]
    sha256: str
    time: datetime
    quality: Quality
    reason: str | None


class Reference(StrictModel):
    """A reference and its released files, latest first; `added` is a time in UTC."""

    id: int
    photo: str
    state: Literal["passive", "activated", "unchanged"]
    added: datetime
    sha256: str
    thumbnail: str
    releases: list[Release]

    @classmethod
    def from_reference(cls, reference: collection.Reference) -> Reference:
        """Convert a reference of the library; paths become file names."""
        return cls(
            id=reference.id,
            photo=display_name(reference.photo),
            state=reference.state,
            added=reference.added,
            sha256=reference.sha256,
            thumbnail=f"/v1/photos/{reference.id}/thumbnail",
            releases=[
                Release(
                    photo=display_name(each.path),
                    state=each.state,
                    sha256=each.sha256,
                    time=each.time,
                    quality=to_quality(each.psnr, each.ssim, each.linf),
                    reason=each.reason,
                )
                for each in reference.releases
            ],
        )


class ReferencePage(StrictModel):
    """One page of references, newest first; `next` is the address of the next page."""

    photos: list[Reference]
    next: str | None
    total: int


class JobStarted(StrictModel):
    """The address at which a job reports its progress."""

    job: str


class JobStatus(StrictModel):
    """Progress of a job."""

    id: str
    kind: Literal["add", "activate"]
    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int
    outcomes: list[PhotoOutcome]


class EditedCopy(StrictModel):
    """Whether an edited copy is found with one probe, made from the original and from the released file."""

    edit: str
    found_before: bool
    found_after: bool


class ActivationReport(StrictModel):
    """Outcome of an activation; `released` and `pictures` are addresses."""

    id: int
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    bytes_before: int
    bytes_after: int
    notes: list[str] = Field(description="What was written differently than in the photo's file.")
    released: str
    pictures: dict[str, str]
    edited_copies: list[EditedCopy]


class Comparison(StrictModel):
    """Two photos compared; `pictures` holds data URLs by name.

    `first` and `second` are always present. If the two can be aligned, there are also `framed` (the second with the
    outline of the first), `overlay` (the same part of the second in the shape of the first) and `difference`.
    """

    same_size: bool
    quality: Quality | None
    distance: float
    false_match_probability: float
    false_match_text: str
    aligned: bool
    pictures: dict[str, str]


class ServiceInfo(StrictModel):
    """Contents of the collection, and the version of the service."""

    photos: int
    passive: int
    activated: int
    unchanged: int
    references: int
    distractors: int
    bytes_on_disk: int
    codebook: str
    extractor: str
    recipes: list[str]
    version: str


class Health(StrictModel):
    """The service is up."""

    status: Literal["ok"] = "ok"

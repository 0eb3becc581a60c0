"""Schemas of the service's JSON: what routes answer, and what `homing.Client` reads.

They are plain dataclasses because the client has no pydantic. FastAPI describes them in the OpenAPI document; the text
below a field is its description there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar, Literal, TypeVar

from homing import collection, perception
from homing.collection.search import Verdict, format_probability
from homing.collection.sources import display_name
from homing.errors import BusyError, HomingError, NotFoundError, TooLargeError, UnsupportedError

STATUS_OF: dict[type[HomingError], int] = {
    UnsupportedError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BusyError: HTTPStatus.CONFLICT,
    NotFoundError: HTTPStatus.NOT_FOUND,
}
"""The status of each error that the client raises again as it was."""

_CONFIG = {"revalidate_instances": "always", "use_attribute_docstrings": True}  # of pydantic, in the server

Kind = TypeVar("Kind")
Model = TypeVar("Model", bound="Schema")


@dataclass(frozen=True, kw_only=True)
class ProblemDetails:
    """A problem as in RFC 9457; `detail` is one line: what was expected, what was received, what to do."""

    __pydantic_config__: ClassVar[dict[str, object]] = _CONFIG

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
    """The path of the request."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Base of all answers: fields that are not declared are rejected."""

    __pydantic_config__: ClassVar[dict[str, object]] = _CONFIG | {"extra": "forbid"}

    @classmethod
    def of(cls: type[Model], source: object, **others: object) -> Model:
        """Convert an object of the library: its attributes that have the names of fields, and other fields."""
        return cls(**_attributes(cls, source) | others)

    def to(self, kind: type[Kind], **others: object) -> Kind:
        """Convert to a dataclass of the library: fields of the same names, and others."""
        return kind(**_attributes(kind, self) | others)


@dataclass(frozen=True, kw_only=True)
class Match(Schema):
    """A reference near a query. Distances: smaller is closer."""

    photo: str
    """File name of the reference."""
    id: int | None
    """Id of the reference; null for distractors."""
    distance: float
    compared: Literal["code", "descriptor"]
    """What the distance was measured to: the code in the index, or the full descriptor."""
    state: Literal["passive", "activated", "unchanged", "distractor"]
    false_match_probability: float
    """Probability that a photo related to none of the references has a match this near."""
    false_match_text: str
    """The false-match probability in words, such as "1 in 40,000"."""
    verdict: Verdict
    thumbnail: str | None

    @classmethod
    def from_match(cls, match: collection.Match) -> Match:
        """Convert a match of the library."""
        return cls.of(
            match,
            photo=display_name(match.photo),
            false_match_text=format_probability(match.false_match_probability),
            thumbnail=None if match.id is None else f"/v1/photos/{match.id}/thumbnail",
        )


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Schema):
    """What the search did: number of references, cells probed, matches re-ranked by full descriptors."""

    references: int
    cells: int | None
    probes: int | None
    probe_radius: float | None
    rerank: int
    variants: bool


@dataclass(frozen=True, kw_only=True)
class SearchTimings(Schema):
    """Milliseconds per stage; the sum over photos where several were searched for."""

    decode: float
    network: float
    search: float


@dataclass(frozen=True, kw_only=True)
class QueryResult(Schema):
    """The verdict on one photo, its nearest references, and what the search did."""

    query: str
    """File name of the photo searched for."""
    verdict: Verdict
    """Verdict of the best match: "match" up to a false-match probability of 0.001, "possible" up to 0.3."""
    matches: list[Match]
    search: SearchSettings

    @classmethod
    def from_result(cls, query: str, result: collection.SearchResult) -> QueryResult:
        """Convert a result of the library."""
        matches = [Match.from_match(match) for match in result]
        return cls.of(result, query=query, matches=matches, search=SearchSettings.of(result.settings))

    def to_result(self) -> collection.SearchResult:
        """Convert to a result of the library."""
        matches = tuple(match.to(collection.Match) for match in self.matches)
        return self.to(collection.SearchResult, matches=matches, settings=self.search.to(collection.SearchSettings))


@dataclass(frozen=True, kw_only=True)
class SearchResponse(QueryResult):
    """The result of one photo."""

    # Declared again, because descriptions of fields are not inherited.
    query: str
    """File name of the photo searched for."""
    verdict: Verdict
    """Verdict of the best match: "match" up to a false-match probability of 0.001, "possible" up to 0.3."""
    milliseconds: SearchTimings


@dataclass(frozen=True, kw_only=True)
class QueryProblem(Schema):
    """Why one of several photos was not searched for."""

    query: str
    problem: ProblemDetails


@dataclass(frozen=True, kw_only=True)
class BatchSearchResponse(Schema):
    """The results of several photos, in the order of the request."""

    results: list[QueryResult | QueryProblem]
    milliseconds: SearchTimings


@dataclass(frozen=True, kw_only=True)
class PhotoOutcome(Schema):
    """Outcome of one photo: the id of its reference, or the problem if it failed."""

    photo: str
    id: int | None
    state: Literal["added", "known", "activated", "unchanged", "failed"]
    problem: str | None = None
    bytes_before: int | None = None
    """Size of the photo's file, if it was activated."""
    bytes_after: int | None = None
    """Size of the released file, if there is one."""
    notes: tuple[str, ...] = ()
    """What was written differently than in the photo's file."""


@dataclass(frozen=True, kw_only=True)
class AddResponse(Schema):
    """The outcome of each photo, in the order of the request."""

    outcomes: list[PhotoOutcome]


@dataclass(frozen=True, kw_only=True)
class Quality(Schema):
    """Difference of a released file from its original; `psnr` is null if the two are equal."""

    psnr: float | None
    ssim: float
    linf: float

    @classmethod
    def measured(cls, measured: perception.Quality | collection.Outcome | collection.Release) -> Quality:
        """The quality of a file; JSON has no infinity, so an infinite PSNR becomes null."""
        psnr, ssim, linf = measured.psnr, measured.ssim, measured.linf
        assert psnr is not None and ssim is not None and linf is not None
        return cls(psnr=psnr if math.isfinite(psnr) else None, ssim=ssim, linf=linf)

    def to_quality(self) -> perception.Quality:
        """Convert to a quality of the library."""
        return perception.Quality(math.inf if self.psnr is None else self.psnr, self.ssim, self.linf)


@dataclass(frozen=True, kw_only=True)
class Release(Schema):
    """One released file of a reference; `time` is in UTC."""

    photo: str
    state: Literal["activated", "unchanged"]
    sha256: str
    time: datetime
    quality: Quality
    reason: str | None

    @classmethod
    def from_release(cls, release: collection.Release) -> Release:
        """Convert a release of the library."""
        return cls.of(release, photo=display_name(release.path), quality=Quality.measured(release))

    def to_release(self) -> collection.Release:
        """Convert to a release of the library; its path is a file name."""
        return self.to(collection.Release, path=self.photo, **vars(self.quality.to_quality()))


@dataclass(frozen=True, kw_only=True)
class Reference(Schema):
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
        return cls.of(
            reference,
            photo=display_name(reference.photo),
            thumbnail=f"/v1/photos/{reference.id}/thumbnail",
            releases=[Release.from_release(each) for each in reference.releases],
        )

    def to_reference(self) -> collection.Reference:
        """Convert to a reference of the library."""
        return self.to(collection.Reference, releases=tuple(each.to_release() for each in self.releases))


@dataclass(frozen=True, kw_only=True)
class ReferencePage(Schema):
    """One page of references, newest first; `next` is the address of the next page."""

    photos: list[Reference]
    next: str | None
    total: int


@dataclass(frozen=True, kw_only=True)
class JobStarted(Schema):
    """The address at which a job reports its progress."""

    job: str


@dataclass(frozen=True, kw_only=True)
class JobStatus(Schema):
    """Progress of a job."""

    id: str
    kind: Literal["add", "activate"]
    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int
    outcomes: list[PhotoOutcome]


@dataclass(frozen=True, kw_only=True)
class ReleaseHeaders(Schema):
    """What the `X-Homing` headers of a file to release say; a header that is absent is None here."""

    id: int
    state: Literal["activated", "unchanged"]
    reason: str | None = None
    psnr: float | None = None
    ssim: float
    linf: float
    bytes_before: int
    bytes_after: int
    notes: list[str]

    def to_headers(self) -> dict[str, str]:
        """The headers of a response."""
        texts = vars(self) | {"notes": json.dumps(self.notes)}
        return {_header(name): str(text) for name, text in texts.items() if text is not None}

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> ReleaseHeaders:
        """Read the headers of a response."""
        texts = {each.name: headers[_header(each.name)] for each in fields(cls) if _header(each.name) in headers}
        plain = ("state", "reason")  # the others are JSON
        values: dict[str, Any] = {name: text if name in plain else json.loads(text) for name, text in texts.items()}
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class EditedCopy(Schema):
    """Whether an edited copy is found with one probe, made from the original and from the released file."""

    edit: str
    found_before: bool
    found_after: bool


@dataclass(frozen=True, kw_only=True)
class ActivationReport(Schema):
    """Outcome of an activation; `released` and `pictures` are addresses."""

    id: int
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    bytes_before: int
    bytes_after: int
    notes: list[str]
    """What was written differently than in the photo's file."""
    released: str
    pictures: dict[str, str]
    edited_copies: list[EditedCopy]


@dataclass(frozen=True, kw_only=True)
class Comparison(Schema):
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


@dataclass(frozen=True, kw_only=True)
class ServiceInfo(Schema):
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


@dataclass(frozen=True, kw_only=True)
class Health(Schema):
    """The service is up."""

    status: Literal["ok"] = "ok"


def _header(name: str) -> str:
    return f"x-homing-{name.replace('_', '-')}"


def _attributes(kind: type, source: object) -> dict[str, Any]:
    """The attributes of an object that have the names of a dataclass's fields."""
    return {each.name: getattr(source, each.name) for each in fields(kind) if hasattr(source, each.name)}

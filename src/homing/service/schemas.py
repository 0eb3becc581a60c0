"""What the service answers with, as its OpenAPI description has it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from homing import collection
from homing.collection.listing import ListedReference
from homing.collection.results import format_probability
from homing.service.problems import ProblemDetails
from homing.service.upload_store import display_name

Verdict = Literal["almost certainly a copy", "probably a copy", "perhaps", "no sign of it"]
_VERDICTS: list[tuple[float, Verdict]] = [
    (0.001, "almost certainly a copy"),
    (0.03, "probably a copy"),
    (0.3, "perhaps"),
]


def verdict(false_match_probability: float) -> Verdict:
    """A chance as a judgment: what an unrelated photo would find so rarely is hardly unrelated."""
    return next((words for most, words in _VERDICTS if false_match_probability <= most), "no sign of it")


def thumbnail_url(number: int | None) -> str | None:
    """The address of a small picture of a reference; distractors have none."""
    return None if number is None else f"/v1/photos/{number}/thumbnail"


class StrictModel(BaseModel):
    """What all answers have in common: they hold what is said here, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Match(StrictModel):
    """A reference near a query: its name, how far away, and how likely that is by chance."""

    photo: str
    id: int | None
    distance: float
    compared: Literal["code", "descriptor"]
    state: Literal["passive", "activated", "unchanged", "distractor"]
    false_match_probability: float
    false_match_text: str
    verdict: Verdict
    thumbnail: str | None

    @classmethod
    def from_match(cls, match: collection.Match) -> Match:
        """A match of the library."""
        return cls(
            photo=display_name(match.photo),
            id=match.id,
            distance=match.distance,
            compared=match.compared,
            state=match.state,
            false_match_probability=match.false_match_probability,
            false_match_text=format_probability(match.false_match_probability),
            verdict=verdict(match.false_match_probability),
            thumbnail=thumbnail_url(match.id),
        )


class SearchTimings(StrictModel):
    """How long each part took; of several photos the sum."""

    decode: float
    network: float
    search: float


class SearchResponse(StrictModel):
    """The matches of one photo."""

    matches: list[Match]
    plan: str
    milliseconds: SearchTimings


class PhotoMatches(StrictModel):
    """The matches of one photo of several."""

    name: str
    matches: list[Match]


class PhotoProblem(StrictModel):
    """Why one photo of several was not searched for."""

    name: str
    problem: ProblemDetails


class BatchSearchResponse(StrictModel):
    """The matches of several photos, in the order they came in."""

    results: list[PhotoMatches | PhotoProblem]
    plan: str
    milliseconds: SearchTimings


class PhotoOutcome(StrictModel):
    """What came of one photo: a reference by this id, and why not if it is none."""

    photo: str
    id: int | None
    state: Literal["added", "known", "activated", "unchanged", "failed"]
    problem: str | None = None


class AddResponse(StrictModel):
    """What came of each photo, in the order they came in."""

    outcomes: list[PhotoOutcome]


class Reference(StrictModel):
    """A reference as a list shows it."""

    id: int
    photo: str
    state: Literal["passive", "activated", "unchanged"]
    added: str
    sha256: str
    thumbnail: str

    @classmethod
    def from_row(cls, listed: ListedReference) -> Reference:
        """A row of the catalog."""
        return cls(
            id=listed.id,
            photo=display_name(listed.source),
            state=listed.state,
            added=listed.added.replace(" ", "T") + "Z",
            sha256=listed.sha256,
            thumbnail=f"/v1/photos/{listed.id}/thumbnail",
        )


class ReferencePage(StrictModel):
    """A page of the collection, newest first; `next` is the address of the page after it."""

    photos: list[Reference]
    next: str | None
    total: int


class Quality(StrictModel):
    """How a released file differs from its original; `psnr` is null where the two are equal."""

    psnr: float | None
    ssim: float
    linf: float


class Release(StrictModel):
    """One file that was released of a reference."""

    photo: str
    state: Literal["activated", "unchanged"]
    sha256: str
    released: str
    quality: Quality
    reason: str | None


class ReferenceDetail(Reference):
    """A reference, and what was released of it, the latest first."""

    releases: list[Release]


class JobStarted(StrictModel):
    """Where the progress of a job is told."""

    job: str


class JobStatus(StrictModel):
    """How far a job is."""

    id: str
    kind: Literal["add", "activate"]
    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int
    outcomes: list[PhotoOutcome]


class EditedCopy(StrictModel):
    """Whether a copy, edited in one way, is found with one probe: of the photo as it was, and as released."""

    edit: str
    found_before: bool
    found_after: bool


class ActivationReport(StrictModel):
    """What came of activating a photo; pictures are addresses."""

    id: int
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    released: str
    pictures: dict[str, str]
    edited_copies: list[EditedCopy]


class Comparison(StrictModel):
    """Two photos beside each other; pictures are addresses that hold them.

    `first` and `second` are there always; where they are aligned also `framed`, the second with a frame around what the
    first shows of it, `overlay`, that part of it in the shape of the first, and `difference`, what differs.
    """

    same_size: bool
    quality: Quality | None
    distance: float
    false_match_probability: float
    false_match_text: str
    aligned: bool
    pictures: dict[str, str]


class ServiceInfo(StrictModel):
    """What the collection holds, and what the service is."""

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
    """That there is somebody."""

    status: Literal["ok"] = "ok"

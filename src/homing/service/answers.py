"""What the service answers with, as its OpenAPI description has it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from homing import collection
from homing.collection.listing import Listed
from homing.collection.outcome import in_words
from homing.service.keeping import shown_name
from homing.service.problems import ProblemDetails

Verdict = Literal["almost certainly a copy", "probably a copy", "perhaps", "no sign of it"]
_VERDICTS: list[tuple[float, Verdict]] = [
    (0.001, "almost certainly a copy"),
    (0.03, "probably a copy"),
    (0.3, "perhaps"),
]


def verdict(chance: float) -> Verdict:
    """A chance as a judgement: what an unrelated photo would find so rarely is hardly unrelated."""
    return next((words for most, words in _VERDICTS if chance <= most), "no sign of it")


def thumbnail_of(number: int | None) -> str | None:
    """The address of a small picture of a reference; strangers have none."""
    return None if number is None else f"/v1/photos/{number}/thumbnail"


class Answer(BaseModel):
    """What all answers have in common: they hold what is said here, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Match(Answer):
    """A reference near a query: its name, how far away, and how likely that is by chance."""

    photo: str
    id: int | None
    distance: float
    by: Literal["code", "descriptor"]
    state: Literal["passive", "activated", "unchanged", "background"]
    chance: float
    chance_in_words: str
    verdict: Verdict
    thumbnail: str | None

    @classmethod
    def of(cls, match: collection.Match) -> Match:
        """A match of the library."""
        return cls(
            photo=shown_name(match.photo),
            id=match.id,
            distance=match.distance,
            by=match.by,
            state=match.state,
            chance=match.chance,
            chance_in_words=in_words(match.chance),
            verdict=verdict(match.chance),
            thumbnail=thumbnail_of(match.id),
        )


class Milliseconds(Answer):
    """How long each part took; of several photos the sum."""

    decode: float
    network: float
    search: float


class Found(Answer):
    """The matches of one photo."""

    matches: list[Match]
    plan: str
    milliseconds: Milliseconds


class FoundOf(Answer):
    """The matches of one photo of several."""

    name: str
    matches: list[Match]


class NotSearched(Answer):
    """Why one photo of several was not searched for."""

    name: str
    problem: ProblemDetails


class FoundEach(Answer):
    """The matches of several photos, in the order they came in."""

    results: list[FoundOf | NotSearched]
    plan: str
    milliseconds: Milliseconds


class Outcome(Answer):
    """What came of one photo: a reference by this id, and why not if it is none."""

    photo: str
    id: int | None
    state: Literal["added", "known", "activated", "unchanged", "failed"]
    problem: str | None = None


class Outcomes(Answer):
    """What came of each photo, in the order they came in."""

    outcomes: list[Outcome]


class Reference(Answer):
    """A reference as a list shows it."""

    id: int
    photo: str
    state: Literal["passive", "activated", "unchanged"]
    added: str
    sha256: str
    thumbnail: str

    @classmethod
    def of(cls, listed: Listed) -> Reference:
        """A row of the catalogue."""
        return cls(
            id=listed.id,
            photo=shown_name(listed.source),
            state=listed.state,
            added=listed.added.replace(" ", "T") + "Z",
            sha256=listed.sha256,
            thumbnail=f"/v1/photos/{listed.id}/thumbnail",
        )


class References(Answer):
    """A page of the collection, newest first; `next` is the address of the page after it."""

    photos: list[Reference]
    next: str | None
    total: int


class Quality(Answer):
    """How a released file differs from its original; `psnr` is null where the two are equal."""

    psnr: float | None
    ssim: float
    linf: float


class Released(Answer):
    """One file that was released of a reference."""

    photo: str
    state: Literal["activated", "unchanged"]
    sha256: str
    released: str
    quality: Quality
    reason: str | None


class ReferenceInFull(Reference):
    """A reference, and what was released of it, the latest first."""

    releases: list[Released]


class JobStarted(Answer):
    """Where the progress of a job is told."""

    job: str


class Progress(Answer):
    """How far a job is."""

    id: str
    kind: Literal["add", "activate"]
    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int
    outcomes: list[Outcome]


class Survival(Answer):
    """Whether a copy, edited in one way, is found with one probe: of the photo as it was, and as released."""

    edit: str
    before: bool
    after: bool


class Report(Answer):
    """What came of activating a photo; pictures are addresses."""

    id: int
    state: Literal["activated", "unchanged"]
    reason: str | None
    quality: Quality
    released: str
    pictures: dict[str, str]
    survives: list[Survival]


class Comparison(Answer):
    """Two photos beside each other; pictures are addresses that hold them.

    `first` and `second` are there always; where they are aligned also `framed`, the second with a frame around what the
    first shows of it, `overlay`, that part of it in the shape of the first, and `difference`, what differs.
    """

    same_size: bool
    quality: Quality | None
    distance: float
    chance: float
    chance_in_words: str
    aligned: bool
    pictures: dict[str, str]


class Info(Answer):
    """What the collection holds, and what the service is."""

    photos: int
    passive: int
    activated: int
    unchanged: int
    references: int
    background: int
    bytes_on_disk: int
    codebook: str
    extractor: str
    recipes: list[str]
    version: str


class Health(Answer):
    """That there is somebody."""

    status: Literal["ok"] = "ok"

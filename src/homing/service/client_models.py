"""Results of `homing.Client`, parsed from answers of the service."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar

from homing import collection
from homing._io.paths import Location
from homing.perception import Quality
from homing.service.transport import OutgoingPhoto

Model = TypeVar("Model")


@dataclass(frozen=True, kw_only=True)
class RemoteOutcome(collection.Outcome):
    """Outcome of one photo that was sent, with the id of its reference."""

    id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference of the service; `added` is a time in UTC, `sha256` the hash of its file."""

    id: int
    photo: str
    state: Literal["passive", "activated", "unchanged"]
    added: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """One released file of a reference: when it was released, and its quality."""

    photo: str
    state: Literal["activated", "unchanged"]
    sha256: str
    released: str
    quality: Quality
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class ReferenceDetail(Reference):
    """A reference and its released files, latest first."""

    releases: tuple[Release, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two photos compared; `pictures` holds image files by name."""

    same_size: bool
    quality: Quality | None
    distance: float
    false_match_probability: float
    aligned: bool
    pictures: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ServiceInfo:
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


def parse_added(outgoing: OutgoingPhoto, data: Any) -> RemoteOutcome:
    """Parse the outcome of an added photo."""
    reason = outgoing.message(data["problem"]) if data["problem"] else None
    return RemoteOutcome(photo=outgoing.photo, id=data["id"], state=data["state"], reason=reason)


def parse_released(outgoing: OutgoingPhoto, target: Location, data: Mapping[str, str]) -> RemoteOutcome:
    """Parse the outcome of an activated photo from the headers of the response."""
    reason, psnr = data.get("X-Homing-Reason"), data.get("X-Homing-PSNR")
    figures = {
        "id": int(data["X-Homing-Id"]),
        "state": data["X-Homing-State"],
        "reason": reason and outgoing.message(reason),
    }
    quality = {
        "psnr": math.inf if psnr is None else float(psnr),
        "ssim": float(data["X-Homing-SSIM"]),
        "linf": float(data["X-Homing-Linf"]),
    }
    file = {
        "bytes_before": int(data["X-Homing-Bytes-Before"]),
        "bytes_after": int(data["X-Homing-Bytes-After"]),
        "notes": json.loads(data["X-Homing-Notes"]),
    }
    return parse_fields(RemoteOutcome, {"photo": outgoing.photo, "released": target, **figures, **quality, **file})


def parse_quality(data: Any) -> Quality | None:
    """Parse a quality, if there is one. JSON has null for the infinite PSNR of equal photos."""
    if data is None:
        return None
    return Quality(math.inf if data["psnr"] is None else data["psnr"], data["ssim"], data["linf"])


def parse_page(data: Any) -> tuple[list[Reference], bool]:
    """Parse one page of references, and whether there is a next one."""
    return [parse_fields(Reference, each) for each in data["photos"]], data["next"] is not None


def parse_reference(data: Any) -> ReferenceDetail:
    """Parse a reference with its releases."""
    releases = tuple(
        parse_fields(Release, {**each, "quality": parse_quality(each["quality"])}) for each in data["releases"]
    )
    return parse_fields(ReferenceDetail, {**data, "releases": releases})


def parse_comparison(data: Any) -> Comparison:
    """Parse a comparison, whose pictures are data URLs."""
    pictures = {name: base64.b64decode(each.partition("base64,")[2]) for name, each in data["pictures"].items()}
    return parse_fields(Comparison, {**data, "quality": parse_quality(data["quality"]), "pictures": pictures})


def parse_result(data: Any) -> collection.SearchResult:
    """Parse the result of one query."""
    matches = [parse_fields(collection.Match, each) for each in data["matches"]]
    return collection.SearchResult(matches, parse_fields(collection.SearchPlan, data["search"]), data["query"])


def parse_fields(kind: type[Model], data: Any) -> Model:
    """Build a dataclass from JSON; unknown fields are ignored, so that newer services can add some."""
    assert is_dataclass(kind)
    return kind(**{each.name: data[each.name] for each in fields(kind) if each.name in data})

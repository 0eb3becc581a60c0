"""Results of `homing.Client`, parsed from answers of the service."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

from homing import collection
from homing._io.paths import Location
from homing.errors import PhotoError
from homing.perception import Quality
from homing.photo import MemoryPhoto
from homing.service.transport import OutgoingPhoto

Model = TypeVar("Model")


@dataclass(frozen=True, kw_only=True)
class RemoteOutcome(collection.Outcome):
    """Outcome of one photo that was sent, with the id of its reference."""

    id: int | None = None


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


def failed(photo: int | Location | MemoryPhoto, error: PhotoError) -> RemoteOutcome:
    """The outcome of a photo that failed with an error."""
    return RemoteOutcome(photo=str(photo), state="failed", reason=str(error).removeprefix(f"{photo}: "), error=error)


def parse_added(outgoing: OutgoingPhoto, data: Any) -> RemoteOutcome:
    """Parse the outcome of an added photo."""
    reason = data["problem"].removeprefix(f"{outgoing.name}: ") if data["problem"] else None
    return RemoteOutcome(photo=str(outgoing.photo), id=data["id"], state=data["state"], reason=reason)


def parse_released(outgoing: OutgoingPhoto, target: Location, data: Mapping[str, str]) -> RemoteOutcome:
    """Parse the outcome of an activated photo from the headers of the response."""
    psnr = data.get("X-Homing-PSNR")
    figures = {
        "id": int(data["X-Homing-Id"]),
        "state": data["X-Homing-State"],
        "reason": data.get("X-Homing-Reason"),
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
    return parse_fields(
        RemoteOutcome, {"photo": str(outgoing.photo), "released": str(target), **figures, **quality, **file}
    )


def _quality(data: Any) -> Quality:
    """Parse a quality. JSON has null for the infinite PSNR of equal photos."""
    return Quality(math.inf if data["psnr"] is None else data["psnr"], data["ssim"], data["linf"])


def parse_page(data: Any) -> tuple[list[collection.Reference], bool]:
    """Parse one page of references, and whether there is a next one."""
    return [parse_reference(each) for each in data["photos"]], data["next"] is not None


def parse_reference(data: Any) -> collection.Reference:
    """Parse a reference with its releases; paths are file names."""
    releases = tuple(
        parse_fields(
            collection.Release,
            {**each, **vars(_quality(each["quality"])), "path": each["photo"], "time": _time(each["time"])},
        )
        for each in data["releases"]
    )
    return parse_fields(collection.Reference, {**data, "added": _time(data["added"]), "releases": releases})


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 does not parse Z


def parse_comparison(data: Any) -> Comparison:
    """Parse a comparison, whose pictures are data URLs."""
    pictures = {name: base64.b64decode(each.partition("base64,")[2]) for name, each in data["pictures"].items()}
    quality = None if data["quality"] is None else _quality(data["quality"])
    return parse_fields(Comparison, {**data, "quality": quality, "pictures": pictures})


def parse_result(data: Any) -> collection.SearchResult:
    """Parse the result of one query."""
    return collection.SearchResult(
        matches=tuple(parse_fields(collection.Match, each) for each in data["matches"]),
        settings=parse_fields(collection.SearchSettings, data["search"]),
        query=data["query"],
    )


def parse_fields(kind: type[Model], data: Any) -> Model:
    """Build a dataclass from JSON; unknown fields are ignored, so that newer services can add some."""
    assert is_dataclass(kind)
    return kind(**{each.name: data[each.name] for each in fields(kind) if each.name in data})

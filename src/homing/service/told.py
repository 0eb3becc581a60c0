"""What a client is told by a service, where the library has no word for it."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar

from homing import collection
from homing._places import Place
from homing.perception import Quality
from homing.service.asking import Sent

Told = TypeVar("Told")


@dataclass(frozen=True, kw_only=True)
class Outcome(collection.Outcome):
    """What came of one photo that was sent, and the reference it is there."""

    id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference of the service: its name, the time it came (UTC), the hash of its file."""

    id: int
    photo: str
    state: Literal["passive", "activated", "unchanged"]
    added: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """One file that was released of a reference, when, and what it cost."""

    photo: str
    state: Literal["activated", "unchanged"]
    sha256: str
    released: str
    quality: Quality
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class ReferenceInFull(Reference):
    """A reference, and what was released of it, the latest first."""

    releases: tuple[Release, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two photos beside each other; `pictures` are image files by what they show."""

    same_size: bool
    quality: Quality | None
    distance: float
    chance: float
    aligned: bool
    pictures: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ServiceInfo:
    """What the collection of a service holds, and what the service is."""

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


def added(sent: Sent, told: Any) -> Outcome:
    """What came of a photo that was to be added."""
    reason = sent.line(told["problem"]) if told["problem"] else None
    return Outcome(photo=sent.photo, id=told["id"], state=told["state"], reason=reason)


def released(sent: Sent, target: Place, told: Mapping[str, str]) -> Outcome:
    """What came of a photo that was to be activated, as the headers of its file tell it."""
    reason, psnr = told.get("X-Homing-Reason"), told.get("X-Homing-PSNR")
    said = {"id": int(told["X-Homing-Id"]), "state": told["X-Homing-State"], "reason": reason and sent.line(reason)}
    quality = {
        "psnr": math.inf if psnr is None else float(psnr),
        "ssim": float(told["X-Homing-SSIM"]),
        "linf": float(told["X-Homing-Linf"]),
    }
    return known(Outcome, {"photo": sent.photo, "released": target, **said, **quality})


def quality(told: Any) -> Quality | None:
    """A quality, if there is one; JSON has no infinity for the PSNR of two that are equal."""
    if told is None:
        return None
    return Quality(math.inf if told["psnr"] is None else told["psnr"], told["ssim"], told["linf"])


def page(told: Any) -> tuple[list[Reference], bool]:
    """References, and whether there are more after these."""
    return [known(Reference, each) for each in told["photos"]], told["next"] is not None


def in_full(told: Any) -> ReferenceInFull:
    """A reference with its releases."""
    releases = tuple(known(Release, {**each, "quality": quality(each["quality"])}) for each in told["releases"])
    return known(ReferenceInFull, {**told, "releases": releases})


def comparison(told: Any) -> Comparison:
    """A comparison, whose pictures come in the answer itself."""
    pictures = {name: base64.b64decode(each.partition("base64,")[2]) for name, each in told["pictures"].items()}
    return known(Comparison, {**told, "quality": quality(told["quality"]), "pictures": pictures})


def known(kind: type[Told], told: Any) -> Told:
    """What is told, without what services may tell beside it."""
    assert is_dataclass(kind)
    return kind(**{each.name: told[each.name] for each in fields(kind) if each.name in told})

"""The demo: a handful of real photos among tens of thousands of strangers, released passive and activated."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import fmean

from homing._extras import load_extra, to_get
from homing._files import writing
from homing._places import recorded
from homing.collection import Collection, Outcome
from homing.collection.folder import UPLOADS
from homing.edits import PAPER
from homing.errors import HomingError
from homing.evaluation.protocol.releasing import Released
from homing.evaluation.report import write_report
from homing.evaluation.retrieval import Probes, Query, Search, recall, search_copies

PHOTOS = {
    "skimage.data": (
        "astronaut.png camera.png chelsea.png coffee.png coins.png hubble_deep_field.jpg "
        "ihc.png motorcycle_left.png retina.jpg rocket.jpg"
    ),
    "sklearn.datasets.images": "china.jpg flower.jpg",
}
COLLECTION = "demo.homing"
MARK = ".homing-demo"  # tells a demo's folder from one that holds somebody's photos
ONE_PROBE, DEFAULT = 1, None


@dataclass(frozen=True)
class DemoResult:
    """What the demo found."""

    passive: list[Query]
    activated: list[Query]
    outcomes: list[Outcome]
    strangers: int
    seconds_per_photo: float
    report: Path

    def rows(self) -> Iterator[tuple[str, float, float, float, float]]:
        """Edit, then recall passive and activated with one probe and with the default search; the mean comes last."""
        for edit in (*(each.label for each in PAPER), None):
            recalls = [
                recall(queries, probes=probes, edit=edit)
                for probes in (ONE_PROBE, DEFAULT)
                for queries in (self.passive, self.activated)
            ]
            yield edit or "mean", *recalls  # type: ignore[misc]  # four of them

    def mean(self, name: str) -> float:
        """The mean of psnr, ssim or linf over the activated files."""
        return fmean(getattr(outcome, name) for outcome in self.outcomes if outcome.state == "activated")

    def as_json(self) -> dict[str, object]:
        """Recall with one probe, mean of the 14 edits; mean PSNR of the activated files."""
        return {
            "recall": {
                "passive": recall(self.passive, probes=ONE_PROBE),
                "activated": recall(self.activated, probes=ONE_PROBE),
            },
            "psnr": self.mean("psnr"),
        }


def run_demo(out: Path, advance: Callable[[], None]) -> DemoResult:
    """Release, edit, search and report, into the folder `out`, which an earlier demo may have filled."""
    load_extra("augly.image", extra="demo")
    photos = demo_photos()
    _clear(out, photos)
    with Collection.create(out / COLLECTION, with_background=True) as collection:
        for name, data in photos.items():
            _write(out / "photos" / name, data)
        started = time.perf_counter()
        outcomes = collection.activate(out / "photos", out / "released", report=lambda _: advance())
        seconds = (time.perf_counter() - started) / len(outcomes)
        if failed := next((outcome for outcome in outcomes if outcome.state == "failed"), None):
            raise HomingError(str(failed.reason))
        searches: dict[Probes, Search] = {
            probes: partial(collection.search_descriptors, k=3, probes=probes) for probes in (ONE_PROBE, DEFAULT)
        }
        passive, activated = (
            search_copies(collection.extractor, some, PAPER, searches, advance) for some in before_and_after(outcomes)
        )
        strangers = collection.info().background
    result = DemoResult(passive, activated, outcomes, strangers, seconds, out / "report.html")
    with writing(result.report):
        write_report(result)
    return result


def steps() -> int:
    """How often `run_demo` reports progress."""
    return 3 * sum(len(names.split()) for names in PHOTOS.values())


def before_and_after(outcomes: Iterable[Outcome]) -> tuple[list[Released], list[Released]]:
    """The photos as they were, and as they were released; the seed of either is the photo's place among them all."""
    in_order = sorted(outcomes, key=lambda outcome: outcome.photo)
    named = [recorded(each.photo) for each in in_order]
    before = [Released(name, Path(name), seed) for seed, name in enumerate(named)]
    after = [
        replace(photo, file=Path(recorded(each.released)))
        for photo, each in zip(before, in_order, strict=True)
        if each.released
    ]
    return before, after


def demo_photos() -> dict[str, bytes]:
    """The demo's photos by name, from the packages that carry them."""
    try:
        return {
            name: files(package).joinpath(name).read_bytes()
            for package, names in PHOTOS.items()
            for name in names.split()
        }
    except ModuleNotFoundError as error:
        raise HomingError(f"the demo's photos come with {error.name}; get them: {to_get('demo')}") from error


def _clear(out: Path, names: Iterable[str]) -> None:
    """Remove what an earlier demo wrote, and nothing else."""
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise HomingError(f"{out} holds something else than a demo; choose another folder with --out")
    if any(file.is_file() for file in (out / COLLECTION / UPLOADS).rglob("*")):
        raise HomingError(
            f"{out / COLLECTION} holds photos that came to the service, which a new demo would lose; move it away, or "
            "choose another folder with --out"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARK).touch()
        for name in names:
            (out / "photos" / name).unlink(missing_ok=True)
            (out / "released" / name).unlink(missing_ok=True)
        if (out / COLLECTION).exists():
            shutil.rmtree(out / COLLECTION)
    except OSError as error:
        raise HomingError(f"cannot clear the last demo from {out}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise HomingError(f"cannot write the demo's photo {path}: {error.strerror}") from error

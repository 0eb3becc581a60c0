"""The demo: a few photos among the bundled distractors, released passive and activated, edited and searched for."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import fmean

from homing._extras import install_command
from homing._io.files import report_write_errors
from homing._io.paths import location, stored_path
from homing.bench.demo_report import write_demo_report
from homing.bench.protocol.release import ReleasedPhoto
from homing.bench.retrieval import Probes, Query, Search, recall, search_copies
from homing.collection import Collection, Outcome
from homing.collection.storage.parts import UPLOADS
from homing.edits import PAPER
from homing.errors import HomingError

PHOTOS = {
    "skimage.data": (
        "astronaut.png camera.png chelsea.png coffee.png coins.png hubble_deep_field.jpg "
        "ihc.png motorcycle_left.png retina.jpg rocket.jpg"
    ),
    "sklearn.datasets.images": "china.jpg flower.jpg",
}
COLLECTION = "demo.homing"
MARK = ".homing-demo"  # marks a folder that a demo wrote and may overwrite
ONE_PROBE, DEFAULT = 1, None


@dataclass(frozen=True)
class DemoResult:
    """The results of the demo."""

    passive: list[Query]
    activated: list[Query]
    outcomes: list[Outcome]
    distractors: int
    seconds_per_photo: float
    report: Path

    @property
    def headline(self) -> str:
        """The recall of all copies with one probe, in one sentence."""
        return "One probe finds " + self._recalls(ONE_PROBE)

    @property
    def default_search(self) -> str:
        """The recall of all copies with the default search, in one sentence."""
        return "The default search, which probes more cells, finds " + self._recalls(DEFAULT)

    def _recalls(self, probes: Probes) -> str:
        activated, passive = (100 * recall(each, probes=probes) for each in (self.activated, self.passive))
        return f"{activated:.0f} % of edited copies with activation, {passive:.0f} % without"

    def rows(self) -> Iterator[tuple[str, float, float, float, float]]:
        """Edit, recall passive and activated with one probe, then with the default search; the mean is last."""
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
    """Release, edit, search, and write a report into the folder `out`; files of an earlier demo are replaced."""
    photos = demo_photos()
    _clear(out, photos)
    with Collection.create(out / COLLECTION, with_distractors=True) as collection:
        for name, data in photos.items():
            _write(out / "photos" / name, data)
        started = time.perf_counter()
        outcomes = collection.activate(out / "photos", out / "released", on_outcome=lambda _: advance())
        seconds = (time.perf_counter() - started) / len(outcomes)
        if failed := next((outcome for outcome in outcomes if outcome.state == "failed"), None):
            raise HomingError(f"{failed.photo}: {failed.reason}")
        searches: dict[Probes, Search] = {
            probes: partial(collection.search_descriptors, k=3, probes=probes) for probes in (ONE_PROBE, DEFAULT)
        }
        passive, activated = (
            search_copies(collection.extractor, released, PAPER, searches, advance)
            for released in passive_and_released(outcomes)
        )
        distractors = collection.info().distractors
    result = DemoResult(passive, activated, outcomes, distractors, seconds, out / "report.html")
    with report_write_errors(result.report):
        write_demo_report(result)
    return result


def steps() -> int:
    """The number of times that `run_demo` calls `advance`."""
    return 3 * sum(len(names.split()) for names in PHOTOS.values())


def passive_and_released(outcomes: Iterable[Outcome]) -> tuple[list[ReleasedPhoto], list[ReleasedPhoto]]:
    """The original photos and their released files; the seed of both is the photo's position in the sorted list."""
    sorted_outcomes = sorted(outcomes, key=lambda outcome: outcome.photo)
    sources = [stored_path(location(each.photo)) for each in sorted_outcomes]
    originals = [ReleasedPhoto(name, Path(name), seed) for seed, name in enumerate(sources)]
    released_photos = [
        replace(photo, file=Path(stored_path(location(each.released))))
        for photo, each in zip(originals, sorted_outcomes, strict=True)
        if each.released
    ]
    return originals, released_photos


def demo_photos() -> dict[str, bytes]:
    """The demo's photos by name, from the packages that contain them."""
    try:
        return {
            name: files(package).joinpath(name).read_bytes()
            for package, names in PHOTOS.items()
            for name in names.split()
        }
    except ModuleNotFoundError as error:
        raise HomingError(
            f"the demo's photos are part of {error.name}; install it: {install_command('demo')}"
        ) from error


def _clear(out: Path, names: Iterable[str]) -> None:
    """Remove the files of an earlier demo, and nothing else."""
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise HomingError(f"{out} is not empty and was not written by a demo; choose another folder with --out")
    if any(file.is_file() for file in (out / COLLECTION / UPLOADS).rglob("*")):
        raise HomingError(
            f"{out / COLLECTION} holds photos uploaded to the service, which a new demo would delete; move it away, "
            "or choose another folder with --out"
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
        raise HomingError(f"cannot remove the files of the last demo from {out}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise HomingError(f"cannot write the demo's photo {path}: {error.strerror}") from error

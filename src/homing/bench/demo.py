"""The demo: a few photos among the bundled distractors, released passive and activated, edited and searched for."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import fmean

import numpy as np

from homing._imports import install_command
from homing._io.files import report_write_errors, write_atomically
from homing._io.paths import location, stored_path
from homing.bench.data import ReleasedPhoto
from homing.bench.references import CollectionSearch, search_copies
from homing.collection import Collection, Outcome
from homing.collection.sources import display_name
from homing.collection.storage.layout import UPLOADS
from homing.edits import PAPER
from homing.errors import HomingError
from homing.imaging import MAGNIFY, difference, embed, jnd_picture, render_page, to_image
from homing.photo import Photo

PHOTOS = {
    "skimage.data": (
        "astronaut.png camera.png chelsea.png coffee.png coins.png hubble_deep_field.jpg "
        "ihc.png motorcycle_left.png retina.jpg rocket.jpg"
    ),
    "sklearn.datasets.images": "china.jpg flower.jpg",
}
COLLECTION = "demo.homing"
MARK = ".homing-demo"  # marks a folder that a demo wrote and may overwrite
ONE_PROBE, DEFAULT = 1, None  # probes


@dataclass(frozen=True)
class DemoResult:
    """The results of the demo: the searches of passive and of activated photos, by probes."""

    passive: Mapping[int | None, CollectionSearch]
    activated: Mapping[int | None, CollectionSearch]
    outcomes: list[Outcome]
    sources: list[str]  # of the photos, in the order of the searches
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

    def _recalls(self, probes: int | None) -> str:
        activated, passive = (100 * each[probes].correct.mean() for each in (self.activated, self.passive))
        return f"{activated:.0f} % of edited copies with activation, {passive:.0f} % without"

    def rows(self) -> Iterator[tuple[str, list[float]]]:
        """Edit, recall passive and activated with one probe, then with the default search; the mean is last."""
        correct = [found[probes].correct for probes in (ONE_PROBE, DEFAULT) for found in (self.passive, self.activated)]
        for i, edit in enumerate(PAPER):
            yield edit.label, [float(each[:, i].mean()) for each in correct]
        yield "mean", [float(each.mean()) for each in correct]

    def mean(self, name: str) -> float:
        """The mean of psnr, ssim or linf over the activated files."""
        return fmean(getattr(outcome, name) for outcome in self.outcomes if outcome.state == "activated")

    def as_json(self) -> dict[str, object]:
        """Recall with one probe, mean of the 14 edits; mean PSNR of the activated files."""
        return {
            "recall": {
                "passive": float(self.passive[ONE_PROBE].correct.mean()),
                "activated": float(self.activated[ONE_PROBE].correct.mean()),
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
        originals, released = passive_and_released(outcomes)
        passive, activated = (
            search_copies(collection, each, (ONE_PROBE, DEFAULT), advance) for each in (originals, released)
        )
        distractors = collection.info().distractors
    sources = [photo.source for photo in originals]
    result = DemoResult(passive, activated, outcomes, sources, distractors, seconds, out / "report.html")
    with report_write_errors(result.report):
        write_atomically(result.report, _page(result))
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
        folders = {files(package): names.split() for package, names in PHOTOS.items()}
    except ModuleNotFoundError as error:
        message = f"the demo's photos are part of {error.name}; install it: {install_command('demo')}"
        raise HomingError(message) from error
    return {name: folder.joinpath(name).read_bytes() for folder, names in folders.items() for name in names}


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


def _page(result: DemoResult) -> bytes:
    """The page: one HTML file with embedded pictures."""
    values = {
        "result": result,
        "recalls": list(result.rows()),
        "display_name": display_name,
        "photos": [_photo(result, outcome) for outcome in result.outcomes],
    }
    return render_page("demo.html", values, "homing.bench")


def _photo(result: DemoResult, outcome: Outcome) -> dict[str, object]:
    """Pictures of one photo as data URLs, and the searches for the copy with the largest difference in results.

    A search is whether the copy was found, and its matches.
    """
    assert outcome.released is not None
    seed = result.sources.index(stored_path(location(outcome.photo)))
    searches = {"passive": result.passive[ONE_PROBE], "activated": result.activated[ONE_PROBE]}
    number = _hardest_copy(*(search.correct[seed] for search in searches.values()))
    before, after = Photo.load(outcome.photo).pixels(), Photo.load(outcome.released).pixels()
    pictures = {
        "before": to_image(before),
        "after": to_image(after),
        f"difference ×{MAGNIFY}": difference(before, after),
        "JND map": jnd_picture(before),
        f"copy: {PAPER[number].label}": PAPER[number](to_image(after), seed),
    }
    return {
        "outcome": outcome,
        "pictures": {name: embed(image) for name, image in pictures.items()},
        "edit": PAPER[number].label,
        **{
            name: (bool(search.correct[seed, number]), search.matches[seed * len(PAPER) + number])
            for name, search in searches.items()
        },
    }


def _hardest_copy(passive: np.ndarray, activated: np.ndarray) -> int:
    """The edit (of E) for which activation made the most difference, by whether each copy was found."""
    # Edits are ordered from easy to hard: of the copies found only activated, the last is the hardest.
    for chosen in (activated & ~passive, activated):
        if chosen.any():
            return int(np.flatnonzero(chosen)[-1])
    return len(passive) - 1

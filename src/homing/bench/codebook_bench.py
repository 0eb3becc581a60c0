"""A bench that measures one codebook after the other; the checks of its input, and what it trains itself."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._io.files import prepare_output_folder, report_write_errors, write_atomically
from homing._io.parallel import prefetch_map
from homing.bench.base import Bench, IndexSettings, PhotoSettings, Progress
from homing.bench.data import (
    ReleasedPhoto,
    bundled_descriptor_set,
    cache_key,
    check_bundled_distractors,
    file_state,
    load_descriptor_set,
    photo_states,
    read_descriptor_set,
    refuse_inside,
    refuse_overlap,
)
from homing.bench.report import CsvTable
from homing.bench.runs import INTERVALS, CodebookRun, CopySearch
from homing.codebooks import Codebook
from homing.codebooks.faiss_training import build_quantizer
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor, describe_images
from homing.extractors.base import default_batch_size
from homing.photo import LocalPhoto, Photo, find_photos
from homing.training.codebooks import codebook_from_descriptors

Measured = TypeVar("Measured")


class CodebookBench(Bench, Generic[Measured]):
    """A bench that measures one codebook after the other."""

    what: ClassVar[str]  # what is measured: the beginning of the summary
    intervals: ClassVar[str] = INTERVALS  # how intervals are computed
    csv_headings: ClassVar[Sequence[str]] = CopySearch.HEADINGS
    settings: PhotoSettings

    def __init__(self, settings: PhotoSettings, progress: Progress, command: str = "") -> None:
        super().__init__(settings, progress, command)
        self.runs: list[CodebookRun] = []
        self.measured: list[Measured] = []  # what a bench keeps for its report besides rows
        self.searches: list[CopySearch] = []

    def measure(self) -> None:
        """Measure each codebook."""
        self.measure_runs(codebook_runs(self.settings, self.progress))

    def measure_runs(self, runs: Iterator[CodebookRun]) -> None:
        """Measure these codebooks, one after the other."""
        for run in runs:
            self.runs.append(run)
            self.measure_codebook(run)
            self.failures += run.failures

    @abstractmethod
    def measure_codebook(self, run: CodebookRun) -> None:
        """Measure one codebook."""

    @abstractmethod
    def facts(self) -> Mapping[str, object]:
        """What results.json and the page tell of the settings, besides the counts."""

    def about(self) -> Mapping[str, object]:
        """Counts of photos and distractors, the settings, and how intervals are computed."""
        first = self.runs[0]
        distractors = {
            "photos": first.distractors.photos,
            "descriptors": len(first.distractors.descriptors),
            "bundled": first.distractors.codes is not None,
        }
        counts = {"photos": len(first.originals), "distractors": distractors}
        return {**counts, **self.facts(), "intervals": self.intervals}

    @property
    def has_cells(self) -> dict[str, bool]:
        """Whether the index of each codebook has cells."""
        return {run.codebook.name: run.codebook.has_cells for run in self.runs}

    def numbers(self) -> Mapping[str, object]:
        """The codebooks."""
        books = [run.codebook for run in self.runs]
        return {
            "codebooks": {
                book.name: {"fingerprint": book.fingerprint, "extractor_fingerprint": book.extractor_fingerprint}
                for book in books
            }
        }

    def summary(self) -> str:
        """What was measured, in one line."""
        return f"{self.what}: {self.among()}"

    def among(self) -> str:
        """The numbers of photos, references and distractors, in one sentence."""
        first = self.runs[0]
        photos, distractors = len(first.originals), len(first.distractors.descriptors)
        among = f"{photos:,} photos among {photos + distractors:,} references, {distractors:,} of them distractors"
        if first.distractors.codes is not None:
            return f"{among} bundled with the codebook, compared by their codes in every search."
        return f"{among}, from {first.distractors.photos:,} distinct photos."

    def csv(self) -> CsvTable | None:
        """A row for each search, if the bench keeps its searches."""
        lines = (line for search in self.searches for line in search.lines())
        return CsvTable(headings=self.csv_headings, rows=lines) if self.searches else None


def codebook_runs(settings: PhotoSettings, progress: Progress) -> Iterator[CodebookRun]:
    """Each codebook, ready to be measured, one after the other; all checks are made before the first."""
    index = settings if isinstance(settings, IndexSettings) and settings.index else None
    specs, train = (index.index, index.train_photos) if index else ((), None)
    books = _load_codebooks(settings.books, specs)
    # Check everything before any work: a missing file must not end the run hours later.
    networks = []
    for book in books:
        networks.append(extractors.load(book.extractor))
        book.check(networks[-1])
    trained = extractors.load(index.extractor) if index else None
    photos = find_photos([settings.photos])[: settings.limit]
    _check_inputs(settings, photos, train)
    if index and train and trained:
        _check_specs(specs, train, trained, index.descriptors)
    if settings.distractor_photos is None:
        for book in books:
            check_bundled_distractors(book)
    elif settings.distractor_photos.is_file():
        for network in {each.fingerprint: each for each in [*networks, *([trained] if trained else [])]}.values():
            read_descriptor_set(settings.distractor_photos, network, settings.distractors)
    prepare_output_folder(settings.out)

    def start(book: Codebook, network: Extractor, failures: Sequence[str] = ()) -> CodebookRun:
        if (given := settings.distractor_photos) is None:
            distractors = bundled_descriptor_set(book, settings.distractors)
        else:
            what = f"{book.name}: describing the distractors"
            distractors = load_descriptor_set(given, network, settings.distractors, settings.out, progress, what)
        with progress(f"{book.name}: describing the photos", len(photos)) as advance:
            originals, descriptors, unreadable = describe_photos(network, photos, advance)
        failed = [*distractors.failures, *unreadable, *failures]
        return CodebookRun(settings, book, network, originals, descriptors, distractors, failed, progress)

    def runs() -> Iterator[CodebookRun]:
        yield from map(start, books, networks)
        if index and train and trained:
            for spec in specs:
                count = index.descriptors
                book, failures = trained_codebook(spec, train, trained, settings.out, progress, descriptors=count)
                yield start(book, trained, failures)

    return runs()


def _check_inputs(settings: PhotoSettings, photos: Sequence[LocalPhoto], train: Path | None) -> None:
    """Refuse photos that have two roles, and an out folder among them."""
    distractor_photos, train_photos = (
        find_photos([each]) if each is not None and not each.is_file() else []
        for each in (settings.distractor_photos, train)
    )
    for folder in (settings.photos, settings.distractor_photos, train):
        if folder is not None:
            refuse_inside(settings.out, folder)
    refuse_overlap(
        photos, distractor_photos, "among the photos and among the distractors; it cannot be its own distractor"
    )
    for inputs, what in ((photos, "among the photos"), (distractor_photos, "among the distractors")):
        trained_on = "among the training photos; an index is measured on photos it was not trained on"
        refuse_overlap(inputs, train_photos, f"{what} and {trained_on}")


def describe_photos(
    extractor: Extractor, photos: Sequence[LocalPhoto], advance: Callable[[], None]
) -> tuple[list[ReleasedPhoto], Tensor, list[str]]:
    """The readable photos, their descriptors (P, dim), and the errors of the others."""

    def square(photo: LocalPhoto) -> Tensor | PhotoError:
        try:
            return extractor.resize(Photo.load(photo.path).pixels())
        except PhotoError as error:
            return error

    originals: list[ReleasedPhoto] = []
    descriptors: list[Tensor] = []
    failures: list[str] = []
    results = enumerate(zip(photos, prefetch_map(square, photos), strict=True))
    while batch := list(islice(results, default_batch_size(extractor))):
        inputs = [result for _, (_, result) in batch if isinstance(result, Tensor)]
        descriptors += [describe_images(extractor, inputs)] if inputs else []
        for seed, (photo, result) in batch:
            advance()
            if isinstance(result, PhotoError):
                failures.append(str(result))
            else:
                originals.append(ReleasedPhoto(str(photo.name), photo.path, seed))
    if not originals:
        raise HomingError(f"none of the {len(photos)} photos can be read; the first error: {failures[0]}")
    return originals, torch.cat(descriptors), failures


def _load_codebooks(named: Sequence[str], index: Sequence[str]) -> list[Codebook]:
    books = [codebooks.load(name) for name in named]
    names = [*(book.name for book in books), *index]
    if invalid := next((name for name in names if Path(name).name != name or ".." in name), None):
        raise HomingError(
            f"a codebook is named '{invalid}', which cannot be the name of a folder; train it under another name"
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise HomingError(f"two of the codebooks are named '{twice}'; measure them into different --out folders")
    return books


def _check_specs(specs: Sequence[str], train_photos: Path, extractor: Extractor, descriptors: int | None) -> None:
    """Refuse specs that cannot be trained, before any other work."""
    if train_photos.is_file():
        count = len(read_descriptor_set(train_photos, extractor, descriptors).descriptors)
    else:
        count = descriptors or len(find_photos([train_photos]))
    for spec in specs:
        build_quantizer(spec, dim=extractor.dim, descriptors=count)


def trained_codebook(
    spec: str,
    train_photos: Path,
    extractor: Extractor,
    folder: Path,
    progress: Progress,
    *,
    descriptors: int | None = None,
) -> tuple[Codebook, list[str]]:
    """A codebook of this spec, trained on a folder of photos or a .npy file of descriptors, and the photos' errors.

    `descriptors` is the number of descriptors to train on: of whole photos first, then of random crops; by default one
    of each photo. Codebook, descriptors and errors are cached in the folder. Unreadable photos are left out.
    """
    photos = [] if train_photos.is_file() else find_photos([train_photos])
    source: object = photo_states(photos) or [str(train_photos.absolute()), *file_state(train_photos)]
    file = folder / f"codebook-{cache_key(spec, extractor.fingerprint, descriptors, source)}.codebook"
    failures_file = file.with_suffix(".json")
    if file.is_file() and failures_file.is_file():
        return Codebook.read(file), json.loads(failures_file.read_text())
    cache_folder = folder / "train-photos"
    if photos:
        with report_write_errors(cache_folder):
            cache_folder.mkdir(exist_ok=True)
    what = f"{spec}: describing the training photos"
    training_set = load_descriptor_set(train_photos, extractor, descriptors, cache_folder, progress, what)
    with progress(f"{spec}: training", 1) as advance:
        rows = np.asarray(training_set.descriptors)
        each = -(-(descriptors or len(photos)) // len(photos)) if photos else 1  # unknown for a file of descriptors
        book = codebook_from_descriptors(rows, spec=spec, extractor=extractor, name=spec, per_photo=each)
        advance()
    failures = training_set.failures if photos else []
    with report_write_errors(failures_file):
        write_atomically(failures_file, json.dumps(failures).encode())
    book.write(file)
    return book, failures

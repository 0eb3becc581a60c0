"""The configuration of a bench, and its photos, distractors and codebooks ready to be measured."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._io.files import prepare_output_folder
from homing._io.parallel import prefetch_map
from homing.activation import RECIPES, Recipe, resolve_recipe
from homing.bench.protocol.codebooks import check_specs, trained_codebook
from homing.bench.protocol.copies import describe_copies
from homing.bench.protocol.descriptor_set import (
    DescriptorSet,
    bundled_descriptor_set,
    check_bundled_distractors,
    compute_descriptor_set,
    read_descriptor_set,
)
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Neighbors, Probes, References
from homing.bench.protocol.release import ReleasedPhoto, ReleaseResult, release
from homing.codebooks import Codebook
from homing.edits import Edit
from homing.errors import HomingError, PhotoError, UnknownNameError
from homing.extractors import Extractor, describe_images
from homing.extractors.base import default_batch_size
from homing.objectives import has_objective
from homing.photo import LocalPhoto, Photo, find_photos

PASSIVE = "passive"  # instead of a recipe: photos are released unmodified


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """The photos to release, edit and search for, the distractors, the codebooks, and the out folder.

    `distractor_photos` is a folder of photos or a .npy file of descriptors; None stands for the distractors bundled
    with the codebook. Besides existing `codebooks`, a bench compares those it trains itself: one for each spec in
    `index`, for `extractor`, on `train_photos` (a folder of photos or a .npy file of descriptors).
    """

    photos: Path
    out: Path
    distractor_photos: Path | None = None
    distractors: int = 300_000
    codebooks: Sequence[str] = ("homing-1",)
    index: Sequence[str] = ()
    train_photos: Path | None = None
    extractor: str = "homing-1"
    descriptors: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if bool(self.index) != (self.train_photos is not None):
            raise HomingError(
                "an index is trained on photos of its own; give both --index SPEC and --train-photos PHOTOS"
            )
        if self.index and self.distractor_photos is None:
            raise HomingError(
                "a codebook trained with --index has no bundled distractors; give photos with --distractor-photos"
            )
        if not self.codebooks and not self.index:
            raise HomingError("a bench needs a codebook, got none; 'homing-1' is bundled")
        if self.distractors < 1 or (self.limit is not None and self.limit < 1):
            raise HomingError(f"distractors and limit must be at least 1, got {self.distractors} and {self.limit}")


def check_recipes(names: Sequence[str]) -> None:
    """Refuse an unknown recipe name."""
    for name in names:
        if name != PASSIVE and name not in RECIPES:
            raise UnknownNameError("recipe", name, [PASSIVE, *RECIPES])


@dataclass(frozen=True)
class CodebookRun:
    """One codebook under test, its network, and the (P, D) descriptors of the originals and of the distractors."""

    config: BenchConfig
    codebook: Codebook
    extractor: Extractor
    originals: list[ReleasedPhoto]
    descriptors: Tensor
    distractors: DescriptorSet
    failures: list[str]
    progress: Progress

    @cached_property
    def references(self) -> References:
        """The originals among the distractors."""
        return References(self.codebook, self.descriptors, self.distractors, self.extractor.device)

    def supported_recipes(self, recipes: Sequence[str]) -> list[str]:
        """The recipes this codebook supports: only passive if activation cannot improve it."""
        wanted = list(dict.fromkeys(recipes))
        return [each for each in wanted if each == PASSIVE or has_objective(self.codebook)] or [PASSIVE]

    def probes(self, requested: Sequence[Probes]) -> list[Probes]:
        """The probes that give different results: an index without cells has only one, besides exact."""
        probes = list(dict.fromkeys(requested))
        few = [each for each in probes if each == "exact"] + [each for each in probes if each != "exact"][:1]
        return probes if self.codebook.has_cells else few

    def release(self, recipe: Recipe | str) -> ReleaseResult:
        """The released files; errors of photos that cannot be released are added to the failures."""
        if recipe == PASSIVE:
            return ReleaseResult(self.originals, [], [], 0.0)
        chosen = resolve_recipe(recipe)
        folder = self.config.out / "released" / self.codebook.name / chosen.name
        with self.progress(f"{self.codebook.name}: activating, {chosen.name}", len(self.originals)) as advance:
            release_result = release(
                self.originals,
                folder,
                extractor=self.extractor,
                codebook=self.codebook,
                recipe=chosen,
                advance=advance,
            )
        if not release_result.files:
            raise HomingError(
                f"no photo could be released with {chosen}; the first error: {release_result.failures[0]}"
            )
        self.failures.extend(release_result.failures)
        return release_result

    def copies(
        self, release_result: ReleaseResult, edits: Sequence[Edit], what: str, *, variants: bool = False
    ) -> np.ndarray:
        """Descriptors (P, E, D) of the files of one release with each edit; (P, E, T, D) with query variants."""
        with self.progress(f"{self.codebook.name}: editing, {what}", len(release_result.files)) as advance:
            return describe_copies(
                self.extractor, release_result.files, edits, self.config.out, advance, variants=variants
            )

    def search(self, copies: np.ndarray, k: int, probes: Probes, what: str) -> Neighbors:
        """The k nearest references of (P, E, D) copies, file by file."""
        with self.progress(f"{self.codebook.name}: searching, {what}", 1) as advance:
            found = self.references.search(copies.reshape(-1, copies.shape[2]), k, probes)
            advance()
        return found

    def true_ids(self, release_result: ReleaseResult) -> np.ndarray:
        """The reference (P,) that is correct for each file of a release."""
        numbers = {original.source: number for number, original in enumerate(self.originals)}
        return np.array([numbers[file.source] for file in release_result.files])


def codebook_runs(config: BenchConfig, progress: Progress) -> Iterator[CodebookRun]:
    """Each codebook, ready to be measured, one after the other; all checks are made before the first."""
    books = _load_codebooks(config)
    # Check everything before any work: a missing file must not end the run hours later.
    networks = [_load_extractor(book) for book in books]
    training_extractor = extractors.load(config.extractor) if config.index else None
    photos = find_photos([config.photos])[: config.limit]
    distractor_photos, train_photos = (
        find_photos([each]) if each is not None and not each.is_file() else []
        for each in (config.distractor_photos, config.train_photos)
    )
    for folder in (config.photos, config.distractor_photos, config.train_photos):
        if folder is not None:
            refuse_inside(config.out, folder)
    refuse_overlap(
        photos, distractor_photos, "among the photos and among the distractors; it cannot be its own distractor"
    )
    for inputs, what in ((photos, "among the photos"), (distractor_photos, "among the distractors")):
        refuse_overlap(
            inputs,
            train_photos,
            f"{what} and among the training photos; an index is measured on photos it was not trained on",
        )
    if training_extractor and config.train_photos:
        check_specs(config.index, config.train_photos, training_extractor, config.descriptors)
    if config.distractor_photos is None:
        for book in books:
            check_bundled_distractors(book)
    elif config.distractor_photos.is_file():
        for network in {each.fingerprint: each for each in [*networks, *filter(None, [training_extractor])]}.values():
            read_descriptor_set(config.distractor_photos, network, config.distractors)
    prepare_output_folder(config.out)

    def measured_runs() -> Iterator[CodebookRun]:
        for book, network in zip(books, networks, strict=True):
            yield _codebook_run(config, book, network, photos, distractor_photos, progress)
        for spec in config.index:
            assert training_extractor is not None and config.train_photos is not None
            book, failures = trained_codebook(
                spec, config.train_photos, training_extractor, config.out, progress, descriptors=config.descriptors
            )
            run = _codebook_run(config, book, training_extractor, photos, distractor_photos, progress)
            run.failures.extend(failures)
            yield run

    return measured_runs()


def _codebook_run(
    config: BenchConfig,
    book: Codebook,
    network: Extractor,
    photos: Sequence[LocalPhoto],
    distractor_photos: Sequence[LocalPhoto],
    progress: Progress,
) -> CodebookRun:
    distractors = _distractors(config, book, network, distractor_photos, progress)
    with progress(f"{book.name}: describing the photos", len(photos)) as advance:
        originals, descriptors, unreadable = describe_photos(network, photos, advance)
    return CodebookRun(
        config, book, network, originals, descriptors, distractors, [*distractors.failures, *unreadable], progress
    )


def _distractors(
    config: BenchConfig, book: Codebook, network: Extractor, photos: Sequence[LocalPhoto], progress: Progress
) -> DescriptorSet:
    """The distractors: bundled with the codebook, from a file of descriptors, or described from these photos."""
    if config.distractor_photos is None:
        return bundled_descriptor_set(book, config.distractors)
    if config.distractor_photos.is_file():
        return read_descriptor_set(config.distractor_photos, network, config.distractors)
    with progress(f"{book.name}: describing the distractors", min(config.distractors, len(photos))) as advance:
        return compute_descriptor_set(network, photos, config.distractors, config.out, advance)


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


def _load_codebooks(config: BenchConfig) -> list[Codebook]:
    books = [codebooks.load(name) for name in dict.fromkeys(config.codebooks)]
    names = [*(book.name for book in books), *config.index]
    if stray := next((name for name in names if Path(name).name != name or ".." in name), None):
        raise HomingError(
            f"a codebook is named '{stray}', which cannot be the name of a folder; train it under another name"
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise HomingError(f"two of the codebooks are named '{twice}'; measure them into different --out folders")
    return books


def _load_extractor(codebook: Codebook) -> Extractor:
    extractor = extractors.load(codebook.extractor)
    codebook.check(extractor)
    return extractor


def refuse_overlap(photos: Sequence[LocalPhoto], others: Sequence[LocalPhoto], what: str) -> None:
    """Refuse a photo whose bytes are in both lists; `what` describes the conflict in the message."""
    sizes: dict[int, list[Path]] = {}
    for other in others:
        sizes.setdefault(_size(other.path), []).append(other.path)
    for photo in photos:
        if any(_same(photo.path, other) for other in sizes.get(_size(photo.path), [])):
            raise HomingError(f"{photo.path} is {what}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0  # reported when it is read


def _same(path: Path, other: Path) -> bool:
    try:
        return filecmp.cmp(path, other, shallow=False)
    except OSError:
        return False  # as above


def refuse_inside(out: Path, folder: Path) -> None:
    """Refuse an out folder inside an input folder: results would become input."""
    if folder.is_dir() and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(folder)):
        raise HomingError(f"the out folder {out} lies inside {folder}; choose another --out")

"""What a bench measures on: photos, strangers, and the codebooks that are compared."""

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
from homing._files import make_out
from homing._parallel import map_ahead
from homing.activation import RECIPES, Recipe, recipe_named
from homing.codebooks import Codebook
from homing.edits import Edit
from homing.errors import HomingError, PhotoError, UnknownNameError
from homing.evaluation.protocol.copies import describe_copies
from homing.evaluation.protocol.references import Nearest, Probes, References
from homing.evaluation.protocol.releasing import Released, ReleasedFiles, release
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import Strangers, find_strangers, read_strangers
from homing.evaluation.protocol.trained import check_specs, trained_codebook
from homing.extractors import Extractor, describe
from homing.extractors.base import images_at_once
from homing.objectives import has_objective
from homing.photo import Found, Photo, gather

PASSIVE = "passive"  # the recipe that releases photos as they are


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The photos to release, edit and search for, what to search among, and where everything goes.

    The background is a folder of photos, or a .npy file of descriptors. Beside finished codebooks, a bench compares
    those it trains itself: of each spec under `index`, for one extractor, from what is `taught`, again photos or
    descriptors.
    """

    photos: Path
    background: Path
    out: Path
    strangers: int = 300_000
    codebooks: Sequence[str] = ("homing-1",)
    index: Sequence[str] = ()
    taught: Path | None = None
    extractor: str = "homing-1"
    descriptors: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if bool(self.index) != (self.taught is not None):
            raise HomingError("an index is trained on photos of its own; give both --index SPEC and --taught PHOTOS")
        if not self.codebooks and not self.index:
            raise HomingError("a bench measures codebooks, got none; 'homing-1' is there without training")
        if self.strangers < 1 or (self.limit is not None and self.limit < 1):
            raise HomingError(f"strangers and limit must be at least 1, got {self.strangers} and {self.limit}")


def check_recipes(names: Sequence[str]) -> None:
    """Refuse a name that no recipe has."""
    for name in names:
        if name != PASSIVE and name not in RECIPES:
            raise UnknownNameError("recipe", name, [PASSIVE, *RECIPES])


@dataclass(frozen=True)
class Subject:
    """One codebook under test, with its network and all photos described by it; (P, D) descriptors of the originals."""

    setting: Setting
    codebook: Codebook
    extractor: Extractor
    originals: list[Released]
    descriptors: Tensor
    strangers: Strangers
    failures: list[str]
    stage: Stage

    @cached_property
    def references(self) -> References:
        """The originals among the strangers."""
        return References(self.codebook, self.descriptors, self.strangers.descriptors, self.extractor.device)

    def ways(self, recipes: Sequence[str]) -> list[str]:
        """Those of the recipes that can be: where activation has nothing to gain, photos are released as they are."""
        wanted = list(dict.fromkeys(recipes))
        return [each for each in wanted if each == PASSIVE or has_objective(self.codebook)] or [PASSIVE]

    def probes(self, asked: Sequence[Probes]) -> list[Probes]:
        """Those that differ: without cells an index gives one answer, however many are asked for."""
        probes = list(dict.fromkeys(asked))
        few = [each for each in probes if each == "exact"] + [each for each in probes if each != "exact"][:1]
        return probes if self.codebook.has_cells else few

    def release(self, recipe: Recipe | str) -> ReleasedFiles:
        """The files that others will edit; those that cannot be released are among the failures from then on."""
        if recipe == PASSIVE:
            return ReleasedFiles(self.originals, [], [], 0.0)
        chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
        folder = self.setting.out / "released" / self.codebook.name / chosen.name
        with self.stage(f"{self.codebook.name}: activating, {chosen.name}", len(self.originals)) as advance:
            made = release(
                self.originals,
                folder,
                extractor=self.extractor,
                codebook=self.codebook,
                recipe=chosen,
                advance=advance,
            )
        if not made.files:
            raise HomingError(f"no photo could be released with {chosen}; the first says: {made.failures[0]}")
        self.failures.extend(made.failures)
        return made

    def copies(self, made: ReleasedFiles, edits: Sequence[Edit], what: str, *, turned: bool = False) -> np.ndarray:
        """Descriptors (P, E, D) of the files of one release, edited in each way; (P, E, T, D) with all their turns."""
        with self.stage(f"{self.codebook.name}: editing, {what}", len(made.files)) as advance:
            return describe_copies(self.extractor, made.files, edits, self.setting.out, advance, turned=turned)

    def search(self, copies: np.ndarray, k: int, probes: Probes, what: str) -> Nearest:
        """The k nearest references of (P, E, D) copies, file by file."""
        with self.stage(f"{self.codebook.name}: searching, {what}", 1) as advance:
            found = self.references.search(copies.reshape(-1, copies.shape[2]), k, probes)
            advance()
        return found

    def own(self, made: ReleasedFiles) -> np.ndarray:
        """The reference (P,) that each file of a release should come home to."""
        numbers = {original.source: number for number, original in enumerate(self.originals)}
        return np.array([numbers[file.source] for file in made.files])


def subjects(setting: Setting, stage: Stage) -> Iterator[Subject]:
    """Every codebook of the setting, one after the other, ready to be measured; what cannot be is refused at once."""
    books = _codebooks(setting)
    # All that is needed before any work: hours later it would be late to hear that something is missing.
    networks = [_network(book) for book in books]
    learner = extractors.load(setting.extractor) if setting.index else None
    photos = gather([setting.photos])[: setting.limit]
    background = None if setting.background.is_file() else gather([setting.background])
    taught = gather([setting.taught]) if setting.taught is not None and not setting.taught.is_file() else []
    for folder in (setting.photos, setting.background, setting.taught):
        if folder is not None:
            refuse_inside(setting.out, folder)
    refuse_overlap(photos, background or [], "among the photos and in the background; it cannot be its own stranger")
    for some, what in ((photos, "among the photos"), (background or [], "in the background")):
        refuse_overlap(some, taught, f"{what} and among the taught; an index is measured on photos it has not seen")
    if learner and setting.taught:
        check_specs(setting.index, setting.taught, learner, setting.descriptors)
    if background is None:
        for network in {each.fingerprint: each for each in [*networks, *filter(None, [learner])]}.values():
            read_strangers(setting.background, network, setting.strangers)
    make_out(setting.out)

    def in_turn() -> Iterator[Subject]:
        for book, network in zip(books, networks, strict=True):
            yield _subject(setting, book, network, photos, background, stage)
        for spec in setting.index:
            assert learner is not None and setting.taught is not None
            book, failures = trained_codebook(
                spec, setting.taught, learner, setting.out, stage, descriptors=setting.descriptors
            )
            subject = _subject(setting, book, learner, photos, background, stage)
            subject.failures.extend(failures)
            yield subject

    return in_turn()


def _subject(
    setting: Setting,
    book: Codebook,
    network: Extractor,
    photos: Sequence[Found],
    background: Sequence[Found] | None,
    stage: Stage,
) -> Subject:
    if background is None:
        strangers = read_strangers(setting.background, network, setting.strangers)
    else:
        with stage(f"{book.name}: describing the background", min(setting.strangers, len(background))) as advance:
            strangers = find_strangers(network, background, setting.strangers, setting.out, advance)
    with stage(f"{book.name}: describing the photos", len(photos)) as advance:
        originals, descriptors, unreadable = describe_photos(network, photos, advance)
    return Subject(setting, book, network, originals, descriptors, strangers, [*strangers.failures, *unreadable], stage)


def describe_photos(
    extractor: Extractor, photos: Sequence[Found], advance: Callable[[], None]
) -> tuple[list[Released], Tensor, list[str]]:
    """The photos that can be read, their descriptors (P, dim), and the errors of the others."""

    def square(photo: Found) -> Tensor | PhotoError:
        try:
            return extractor.resize(Photo.load(photo.path).view())
        except PhotoError as error:
            return error

    originals: list[Released] = []
    descriptors: list[Tensor] = []
    failures: list[str] = []
    results = enumerate(zip(photos, map_ahead(square, photos), strict=True))
    while some := list(islice(results, images_at_once(extractor))):
        squares = [result for _, (_, result) in some if isinstance(result, Tensor)]
        descriptors += [describe(extractor, squares)] if squares else []
        for seed, (photo, result) in some:
            advance()
            if isinstance(result, PhotoError):
                failures.append(str(result))
            else:
                originals.append(Released(str(photo.name), photo.path, seed))
    if not originals:
        raise HomingError(f"none of the {len(photos)} photos can be read; the first says: {failures[0]}")
    return originals, torch.cat(descriptors), failures


def _codebooks(setting: Setting) -> list[Codebook]:
    books = [codebooks.load(name) for name in dict.fromkeys(setting.codebooks)]
    names = [*(book.name for book in books), *setting.index]
    if stray := next((name for name in names if Path(name).name != name or ".." in name), None):
        raise HomingError(
            f"a codebook is named '{stray}', which cannot be the name of a folder; train it under another"
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise HomingError(f"two of the codebooks are named '{twice}'; measure them into different --out folders")
    return books


def _network(codebook: Codebook) -> Extractor:
    extractor = extractors.load(codebook.extractor)
    codebook.check(extractor)
    return extractor


def refuse_overlap(photos: Sequence[Found], others: Sequence[Found], what: str) -> None:
    """No photo may stand on both sides, under whatever name; `what` says where it was met again."""
    sizes: dict[int, list[Path]] = {}
    for other in others:
        sizes.setdefault(_size(other.path), []).append(other.path)
    for photo in photos:
        if any(_same(photo.path, other) for other in sizes.get(_size(photo.path), [])):
            raise HomingError(f"{photo.path} is {what}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0  # what cannot be read is told when it is


def _same(path: Path, other: Path) -> bool:
    try:
        return filecmp.cmp(path, other, shallow=False)
    except OSError:
        return False  # as above


def refuse_inside(out: Path, folder: Path) -> None:
    """What a bench writes may not become its input."""
    if folder.is_dir() and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(folder)):
        raise HomingError(f"the out folder {out} lies inside {folder}; choose another --out")

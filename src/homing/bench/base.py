"""What every bench is: settings that are the options of its command, a measurement, and a report."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import ClassVar

from homing._imports import load_entry_point
from homing._options import Option, check_options, option_name, options_of, setting
from homing.activation import RECIPES
from homing.bench import benches
from homing.bench.figures import Figure
from homing.bench.report import CsvTable, PictureRow, Results
from homing.bench.tables import Row, Table
from homing.edits import GENERATED, PAPER, WILD, Edit, Surroundings, parse
from homing.errors import HomingError, UnknownNameError
from homing.photo import find_photos

# Opens a progress bar with a description and a length; yields the function that advances it by one.
Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]

ENTRY_POINTS = "homing.benches"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a bench, which are the options of its command."""

    out: Path = setting(Option("The folder for results, and for intermediate files that the next run reuses."))

    def __post_init__(self) -> None:
        check_options(self)
        for name, option in options_of(self).items():
            value = getattr(self, name)
            if isinstance(value, (list, tuple)):
                if option.read and not value:
                    raise HomingError(f"{option_name(name)} takes comma-separated {option.takes}, got none")
                object.__setattr__(self, name, tuple(dict.fromkeys(value)))  # what is given twice is measured once


PASSIVE = "passive"  # instead of a recipe: photos are released unmodified
DEFAULT_CODEBOOK = "homing-1"

RECIPES_OPTION = Option(
    "Comma-separated recipes; passive: released as it is. List recipes with: homing recipes.",
    read=str,
    choices=lambda: [PASSIVE, *RECIPES],
    kind="recipe",
)
PROBES_OPTION = Option(
    "Comma-separated numbers of cells to scan; exact: compare all descriptors.",
    read=lambda word: int(word) if word.isdecimal() else word,
    takes="whole numbers from 1, or exact",
    valid=lambda probes: probes == "exact" or (type(probes) is int and probes >= 1),
)
EDITS = {"paper": PAPER, "wild": WILD, "all": (*PAPER, *WILD)}
CODEBOOK_HELP = "A codebook: a name or a file."


@dataclass(frozen=True, kw_only=True)
class PhotoSettings(Settings):
    """The photos to release, edit and search for, the distractors, and the codebooks.

    `distractor_photos` is a folder of photos or a .npy file of descriptors; None stands for the distractors bundled
    with the codebook.
    """

    photos: Path = setting(Option("The photos to release, edit and search for. They must not be training photos."))
    distractor_photos: Path | None = setting(
        Option(
            "Other photos to search among, the distractors: a folder, or a .npy file of descriptors. By default the "
            "distractors bundled with the codebook: codes of photos of COCO train2017 (118,287 for homing-1).",
            default_text="bundled distractors",
        ),
        None,
    )
    distractors: int = setting(
        Option(
            "How many distractors: whole distractor photos first, then random crops of them. Bundled ones: at most "
            "all of them.",
            minimum=1,
        ),
        300_000,
    )
    codebooks: Sequence[str] = setting(
        Option(f"{CODEBOOK_HELP} Repeatable.", name="--codebook", default_text=DEFAULT_CODEBOOK), ()
    )
    limit: int | None = setting(Option("Use only the first photos.", default_text="all", minimum=1), None)

    @property
    def books(self) -> Sequence[str]:
        """The existing codebooks to measure."""
        return self.codebooks or (DEFAULT_CODEBOOK,)


@dataclass(frozen=True, kw_only=True)
class CopySettings(Settings):
    """The edits of the copies, and the pictures around them."""

    edits: Sequence[Edit] = setting(
        Option(
            "Comma-separated edits of the copies; paper: the fourteen of the paper; wild: thirteen that people make, "
            "such as pages, collages and photos of screens; all: both.",
            read=parse,
            takes="edits",
            sets=EDITS,
            default_text="paper",
        ),
        PAPER,
    )
    surroundings: Path | None = setting(
        Option(
            "A folder of other photos, which surround copies in pages, collages and the like.",
            default_text="drawn pictures",
        ),
        None,
    )

    @property
    def labels(self) -> list[str]:
        """The labels of the edits."""
        return [edit.label for edit in self.edits]

    @cached_property
    def pictures(self) -> Surroundings:
        """The pictures around copies."""
        if self.surroundings is None:
            return GENERATED
        return Surroundings(tuple(photo.path for photo in find_photos([self.surroundings])))


@dataclass(frozen=True, kw_only=True)
class IndexSettings(PhotoSettings):
    """Besides existing codebooks, those that the bench trains itself: one for each spec in `index`."""

    index: Sequence[str] = setting(
        Option("A FAISS factory string; its codebook is trained on --train-photos. Repeatable."), ()
    )
    train_photos: Path | None = setting(
        Option("What --index is trained on: a folder of photos, or a .npy file of descriptors."), None
    )
    extractor: str = setting(Option("The network of --index; list networks with: homing extractors."), DEFAULT_CODEBOOK)
    descriptors: int | None = setting(
        Option("How many descriptors --index is trained on.", default_text="one per photo", minimum=1), None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.index) != (self.train_photos is not None):
            raise HomingError(
                "an index is trained on photos of its own; give both --index SPEC and --train-photos PHOTOS"
            )
        if self.index and self.distractor_photos is None:
            raise HomingError(
                "a codebook trained with --index has no bundled distractors; give photos with --distractor-photos"
            )

    @property
    def books(self) -> Sequence[str]:
        """The existing codebooks to measure: none by default if codebooks are trained."""
        return self.codebooks if self.index else super().books


class Bench(ABC):
    """A bench: `measure` fills in its rows, and the other methods show them. The docstring is its command's help."""

    title: ClassVar[str]
    settings_class: ClassVar[type[Settings]]
    resumable: ClassVar[bool] = True
    settings: Settings

    def __init__(self, settings: Settings, progress: Progress, command: str = "") -> None:
        self.settings, self.progress, self.command = settings, progress, command
        self.rows: list[Row] = []  # of results.json
        self.failures: list[str] = []

    @abstractmethod
    def measure(self) -> None:
        """Measure, and keep intermediate results in the out folder."""

    @abstractmethod
    def summary(self) -> str:
        """What was measured, in one line."""

    @abstractmethod
    def about(self) -> Mapping[str, object]:
        """The settings as results.json and the page show them."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """The tables of the report."""

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Headings and rows of the table for a terminal."""
        first = self.tables()[0]
        return first.headings, first.rows

    def numbers(self) -> Mapping[str, object]:
        """Further entries of results.json."""
        return {}

    def figures(self) -> Sequence[Figure]:
        """The figures of the report."""
        return ()

    def pictures(self) -> Sequence[PictureRow]:
        """The pictures of the report."""
        return ()

    def csv(self) -> CsvTable | None:
        """The raw results."""
        return None

    def run(self) -> Results:
        """Measure, and return the report."""
        started = time.perf_counter()
        self.measure()
        seconds = time.perf_counter() - started
        self.failures = list(dict.fromkeys(self.failures))
        numbers = {
            **({"rows": self.rows} if self.rows else {}),
            "settings": self.about(),
            "seconds": round(seconds, 1),
            "failures": self.failures,
            **self.numbers(),
        }
        return Results(
            title=self.title,
            summary=self.summary(),
            command=self.command,
            numbers=numbers,
            tables=self.tables(),
            figures=self.figures(),
            pictures=self.pictures(),
            csv_table=self.csv(),
        )


def bench_names() -> list[str]:
    """The names of all benches: the files in `benches`, and entry points `homing.benches` of other packages."""
    return list(dict.fromkeys([*_bundled_names(), *(entry.name for entry in entry_points(group=ENTRY_POINTS))]))


def load_bench(name: str) -> type[Bench]:
    """The bench of this name: `SpeedBench` of the file `benches/speed.py`, or the class of an entry point."""
    bundled = name in _bundled_names()
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        if bundled:
            raise HomingError(
                f"{entry.value}, of the entry point {ENTRY_POINTS}, has the name of the bundled bench '{name}'; "
                "rename that entry point or uninstall its package"
            )
        external = load_entry_point(entry)
        if not (isinstance(external, type) and issubclass(external, Bench)):
            raise HomingError(
                f"{entry.value}, of the entry point {ENTRY_POINTS}, is not a class that derives from "
                "homing.bench.Bench; repair or uninstall that package"
            )
        return external
    if not bundled:
        raise UnknownNameError("bench", name, bench_names())
    bench: type[Bench] = getattr(import_module(f"{benches.__name__}.{name}"), f"{name.capitalize()}Bench")
    return bench


def _bundled_names() -> list[str]:
    return sorted(module.name for module in iter_modules(benches.__path__) if not module.name.startswith("_"))

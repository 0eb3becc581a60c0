"""The paper bench: all of the paper's measurements in its own setup, on DISC21.

The codebook is trained on `train/`, all of `references/` is indexed, and the 10,000 references that the ground truth
names are released, edited and searched for. The paper's negative queries are edited from the originals of DISC21's
40,000 distractor queries, which are not part of the download: its dev queries are already edited. Negatives are photos
of `train/` instead, as in the authors' published code: of the same kind as the references, but not among them. The
codebook is not trained on them; SSCD, which was trained on `train/`, was.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing import extractors
from homing._io.files import report_write_errors
from homing.bench.benches.disc21 import Disc21, link_photos, photo_folders, read_disc21
from homing.bench.benches.paper_parts import PARTS, PaperComparison, PaperSetup
from homing.bench.benches.retrieval import RetrievalBench
from homing.bench.protocol.codebooks import trained_codebook
from homing.bench.protocol.config import PASSIVE, refuse_inside
from homing.bench.protocol.descriptor_set import DescriptorSet, compute_descriptor_set
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Probes
from homing.bench.results import Figure, write_results
from homing.codebooks.faiss_training import build_quantizer
from homing.errors import HomingError, UnknownNameError
from homing.extractors import Extractor
from homing.photo import LocalPhoto


@dataclass(frozen=True, kw_only=True)
class PaperBench:
    """The folder of DISC21, the network, the index and the numbers of photos; defaults are the paper's.

    `descriptors` is the number of descriptors to train the codebook on, of whole photos first, then of crops; by
    default one of each photo.
    """

    disc21: Path
    out: Path
    extractor: str = "homing-1"
    spec: str = "IVF4096,PQ8x8"
    descriptors: int | None = None
    limit_train: int | None = None
    limit_references: int | None = None
    positives: int = 10_000
    negatives: int = 40_000
    probes: Sequence[Probes] = (1, 16, "exact")
    recipes: Sequence[str] = (PASSIVE, "paper")
    parts: Sequence[str] = tuple(PARTS)

    def __post_init__(self) -> None:
        # The checks of the parts, before hours of work.
        RetrievalBench(
            photos=self.disc21, distractor_photos=self.disc21, out=self.out, probes=self.probes, recipes=self.recipes
        )
        if not set(self.recipes) - {PASSIVE}:
            raise HomingError(f"activated photos are compared with passive ones; give a recipe besides '{PASSIVE}'")
        for part in self.parts:
            if part not in PARTS:
                raise UnknownNameError("part", part, PARTS)
        counts = (self.positives, self.negatives, self.descriptors, self.limit_train, self.limit_references)
        if least := [count for count in counts if count is not None and count < 1]:
            raise HomingError(f"positives, negatives, descriptors and limits must be at least 1, got {least[0]}")

    @property
    def cache_dir(self) -> Path:
        """The folder of cached results, shared by all parts and later runs."""
        return self.out / "cache"


@dataclass(frozen=True)
class PartResult:
    """The result of one part: figures to compare with the paper, and its first figure."""

    name: str
    comparisons: list[PaperComparison]
    figure: Figure
    failures: list[str]

    @property
    def page(self) -> str:
        """The path of its report, relative to the out folder."""
        return f"{self.name}/report.html"


@dataclass(frozen=True)
class PaperResult:
    """The photos measured on, and the results of all parts."""

    bench: PaperBench
    photos: int
    references: int
    train_photos: DescriptorSet
    negatives: int
    parts: list[PartResult]
    failures: list[str]
    seconds: float


def run_paper_bench(bench: PaperBench, command: str, progress: Progress) -> PaperResult:
    """Run each part and write its results into a separate folder.

    Descriptors, codebook and released files are cached for all parts, and for the next run.
    """
    started = time.perf_counter()
    disc = read_disc21(
        bench.disc21,
        positives=bench.positives,
        negatives=bench.negatives,
        limit_references=bench.limit_references,
        limit_train=bench.limit_train,
    )
    for folder in photo_folders(bench.disc21):
        refuse_inside(bench.out, folder)
    network = extractors.load(bench.extractor)
    count = bench.descriptors or len(disc.train_photos)
    build_quantizer(
        bench.spec, dim=network.dim, descriptors=count
    )  # refuses a spec that cannot be trained, before any other work
    with report_write_errors(bench.cache_dir):
        bench.cache_dir.mkdir(parents=True, exist_ok=True)
    train_photos = _describe(bench, network, disc.train_photos, count, "training photos", progress)
    book, _ = trained_codebook(bench.spec, _descriptor_file(train_photos), network, bench.cache_dir, progress)
    book.write(bench.out / f"{bench.spec}.codebook")
    others = _describe(bench, network, disc.others, len(disc.others), "references", progress)
    setup = _setup(bench, disc, others, command, progress)
    parts = [_part(name, setup, bench.out / name) for name in dict.fromkeys(bench.parts)]
    failures = [*train_photos.failures, *others.failures, *(line for part in parts for line in part.failures)]
    return PaperResult(
        bench,
        len(disc.photos),
        len(disc.photos) + len(others.descriptors),
        train_photos,
        len(disc.negatives),
        parts,
        list(dict.fromkeys(failures)),
        time.perf_counter() - started,
    )


def _describe(
    bench: PaperBench, network: Extractor, photos: Sequence[LocalPhoto], count: int, what: str, progress: Progress
) -> DescriptorSet:
    with progress(f"describing the {what}", min(count, len(photos))) as advance:
        return compute_descriptor_set(network, photos, count, bench.cache_dir, advance)


def _descriptor_file(descriptor_set: DescriptorSet) -> Path:
    """The file of these descriptors."""
    assert isinstance(descriptor_set.descriptors, np.memmap)
    return Path(str(descriptor_set.descriptors.filename))


def _setup(bench: PaperBench, disc: Disc21, others: DescriptorSet, command: str, progress: Progress) -> PaperSetup:
    """The setup that all parts share."""
    return PaperSetup(
        photos=link_photos(disc.photos, bench.cache_dir / "photos"),
        negatives=link_photos(disc.negatives, bench.cache_dir / "negatives"),
        distractor_photos=_descriptor_file(others),
        distractors=len(others.descriptors),
        codebook=str(bench.out / f"{bench.spec}.codebook"),
        out=bench.cache_dir,
        probes=bench.probes,
        recipes=bench.recipes,
        command=command,
        progress=progress,
    )


def _part(name: str, setup: PaperSetup, folder: Path) -> PartResult:
    results, comparisons = PARTS[name](setup)
    write_results(results, folder)
    failures = results.numbers["failures"]
    assert isinstance(failures, list)
    return PartResult(name, comparisons, results.figures[0], failures)

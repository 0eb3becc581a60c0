"""The paper bench: all of the paper's measurements in its own set-up, on DISC21.

The codebook learns from `train/`, all of `references/` is indexed, and the 10,000 references that the ground truth
names are released, edited and searched for. The paper makes its negative queries of the originals of DISC21's 40,000
distractors, which the download does not hold; what it holds, the dev queries, was edited already. Negatives are photos
of `train/` instead, as in the authors' published code: of the same kind as the references, and none of them. The
codebook does not learn from them; SSCD, which was trained on `train/`, did.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing import extractors
from homing._files import writing
from homing.codebooks.learning import untrained
from homing.errors import HomingError, UnknownNameError
from homing.evaluation.benches.disc21 import Disc21, folders, link, read_disc21
from homing.evaluation.benches.paper_parts import PARTS, Line, Ready
from homing.evaluation.benches.retrieval import RetrievalBench
from homing.evaluation.protocol.references import Probes
from homing.evaluation.protocol.setting import PASSIVE, refuse_inside
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import Strangers, find_strangers
from homing.evaluation.protocol.trained import trained_codebook
from homing.evaluation.results import Figure, write_results
from homing.extractors import Extractor
from homing.photo import Found


@dataclass(frozen=True, kw_only=True)
class PaperBench:
    """Where DISC21 lies, the network and the index, and how much of everything; as published unless said otherwise.

    `descriptors` are what the codebook learns from, whole photos and crops of them; by default one of each photo.
    """

    disc21: Path
    out: Path
    extractor: str = "homing-1"
    spec: str = "IVF4096,PQ8x8"
    descriptors: int | None = None
    limit_taught: int | None = None
    limit_references: int | None = None
    positives: int = 10_000
    negatives: int = 40_000
    probes: Sequence[Probes] = (1, 16, "exact")
    recipes: Sequence[str] = (PASSIVE, "paper")
    parts: Sequence[str] = tuple(PARTS)

    def __post_init__(self) -> None:
        # A part refuses what it cannot do: now, not after hours of work.
        RetrievalBench(
            photos=self.disc21, background=self.disc21, out=self.out, probes=self.probes, recipes=self.recipes
        )
        if not set(self.recipes) - {PASSIVE}:
            raise HomingError(f"released photos are compared with passive ones; name a recipe beside '{PASSIVE}'")
        for part in self.parts:
            if part not in PARTS:
                raise UnknownNameError("part", part, PARTS)
        counts = (self.positives, self.negatives, self.descriptors, self.limit_taught, self.limit_references)
        if least := [count for count in counts if count is not None and count < 1]:
            raise HomingError(f"positives, negatives, descriptors and limits must be at least 1, got {least[0]}")

    @property
    def kept(self) -> Path:
        """Where everything goes that takes long, for all parts and for the next run."""
        return self.out / "kept"


@dataclass(frozen=True)
class Part:
    """What one bench of several found: what to set beside the paper, and its first figure."""

    name: str
    lines: list[Line]
    figure: Figure
    failures: list[str]

    @property
    def page(self) -> str:
        """Where its report lies, seen from the out folder."""
        return f"{self.name}/report.html"


@dataclass(frozen=True)
class PaperResult:
    """What was measured on, and what every part found."""

    bench: PaperBench
    photos: int
    references: int
    taught: Strangers
    negatives: int
    parts: list[Part]
    failures: list[str]
    seconds: float


def run_paper_bench(bench: PaperBench, command: str, stage: Stage) -> PaperResult:
    """Run one bench after the other and write each one's results into a folder of its own.

    What was described, learnt and released is kept for all of them, and for the next run.
    """
    started = time.perf_counter()
    disc = read_disc21(
        bench.disc21,
        positives=bench.positives,
        negatives=bench.negatives,
        limit_references=bench.limit_references,
        limit_taught=bench.limit_taught,
    )
    for folder in folders(bench.disc21):
        refuse_inside(bench.out, folder)
    network = extractors.load(bench.extractor)
    count = bench.descriptors or len(disc.taught)
    untrained(bench.spec, dim=network.dim, descriptors=count)  # says at once what training would say in an hour
    with writing(bench.kept):
        bench.kept.mkdir(parents=True, exist_ok=True)
    taught = _described(bench, network, disc.taught, count, "photos to learn from", stage)
    book, _ = trained_codebook(bench.spec, _file(taught), network, bench.kept, stage)
    book.write(bench.out / f"{bench.spec}.codebook")
    others = _described(bench, network, disc.others, len(disc.others), "references", stage)
    ready = _ready(bench, disc, others, command, stage)
    parts = [_part(name, ready, bench.out / name) for name in dict.fromkeys(bench.parts)]
    failures = [*taught.failures, *others.failures, *(line for part in parts for line in part.failures)]
    return PaperResult(
        bench,
        len(disc.photos),
        len(disc.photos) + len(others.descriptors),
        taught,
        len(disc.negatives),
        parts,
        list(dict.fromkeys(failures)),
        time.perf_counter() - started,
    )


def _described(
    bench: PaperBench, network: Extractor, photos: Sequence[Found], count: int, what: str, stage: Stage
) -> Strangers:
    with stage(f"describing the {what}", min(count, len(photos))) as advance:
        return find_strangers(network, photos, count, bench.kept, advance)


def _file(strangers: Strangers) -> Path:
    """Where these descriptors are kept."""
    assert isinstance(strangers.descriptors, np.memmap)
    return Path(str(strangers.descriptors.filename))


def _ready(bench: PaperBench, disc: Disc21, others: Strangers, command: str, stage: Stage) -> Ready:
    """All that the parts share, as they are called with it."""
    return Ready(
        photos=link(disc.photos, bench.kept / "photos"),
        negatives=link(disc.negatives, bench.kept / "negatives"),
        background=_file(others),
        strangers=len(others.descriptors),
        codebook=str(bench.out / f"{bench.spec}.codebook"),
        out=bench.kept,
        probes=bench.probes,
        recipes=bench.recipes,
        command=command,
        stage=stage,
    )


def _part(name: str, ready: Ready, folder: Path) -> Part:
    results, lines = PARTS[name](ready)
    write_results(results, folder)
    failures = results.numbers["failures"]
    assert isinstance(failures, list)
    return Part(name, lines, results.figures[0], failures)

"""The parts of the paper bench: each is another bench in the paper's setup, compared with the published figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from homing.bench.benches import (
    analysis_results,
    detection_results,
    edits_results,
    quality_results,
    retrieval_results,
)
from homing.bench.benches.analysis import AnalysisBench, run_analysis_bench
from homing.bench.benches.detection import DetectionBench, run_detection_bench
from homing.bench.benches.edits import EditsBench, run_edits_bench
from homing.bench.benches.quality import QualityBench, QualityResult, run_quality_bench
from homing.bench.benches.retrieval import RetrievalBench, RetrievalRow, run_retrieval_bench
from homing.bench.protocol.config import PASSIVE
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Probes
from homing.bench.published import AVERAGE_PRECISION_GAIN, INDEXES, IVF_FAILURE, QUALITY, TABLE
from homing.bench.results import Results

_PAPER_INDEX = "IVF4096,PQ8x8"  # the index of most published figures


@dataclass(frozen=True, kw_only=True)
class PaperSetup:
    """The setup that all parts share: folders of photos, descriptors of the other references, and one codebook."""

    photos: Path
    negatives: Path
    distractor_photos: Path
    distractors: int
    codebook: str
    out: Path
    probes: Sequence[Probes]
    recipes: Sequence[str]
    command: str
    progress: Progress


class PaperComparison(NamedTuple):
    """A measured figure and the published one, if any; no probes if nothing was searched for."""

    metric: str
    recipe: str
    probes: Probes | None
    ours: str
    published: str


def retrieval(setup: PaperSetup) -> tuple[Results, list[PaperComparison]]:
    """Recall of edited copies."""
    result = run_retrieval_bench(
        RetrievalBench(
            photos=setup.photos,
            distractor_photos=setup.distractor_photos,
            out=setup.out,
            distractors=setup.distractors,
            codebooks=[setup.codebook],
            probes=setup.probes,
            recipes=setup.recipes,
        ),
        setup.progress,
    )
    comparisons = [
        PaperComparison(
            "recall at rank 1, mean of the edits", row.recipe, row.probes, f"{row.mean:.3f}", _published(row)
        )
        for row in result.rows
    ]
    return retrieval_results.results(result, setup.command), comparisons


def detection(setup: PaperSetup) -> tuple[Results, list[PaperComparison]]:
    """Detection of copies among other photos."""
    result = run_detection_bench(
        DetectionBench(
            photos=setup.photos,
            negatives=setup.negatives,
            distractor_photos=setup.distractor_photos,
            out=setup.out,
            distractors=setup.distractors,
            codebooks=[setup.codebook],
            probes=setup.probes,
            recipes=setup.recipes,
        ),
        setup.progress,
    )
    passive = {row.probes: row.average_precision for row in result.rows if row.recipe == PASSIVE}
    comparisons = []
    for row in result.rows:
        printed = [each for each in INDEXES if (each.index, each.recipe, row.probes) == (row.spec, row.recipe, 1)]
        published = f"{printed[0].average_precision:.2f}" if printed else ""
        comparisons.append(
            PaperComparison("µAP of the random edit", row.recipe, row.probes, f"{row.average_precision:.3f}", published)
        )
        if row.recipe != PASSIVE and passive.get(row.probes):
            gain = f"× {row.average_precision / passive[row.probes]:.2f}"
            paper = (row.spec, row.recipe, row.probes) == (_PAPER_INDEX, "paper", 1)
            published = f"× {AVERAGE_PRECISION_GAIN[43.8]:g}" if paper else ""
            comparisons.append(
                PaperComparison("µAP divided by that of passive", row.recipe, row.probes, gain, published)
            )
    return detection_results.results(result, setup.command), comparisons


def quality(setup: PaperSetup) -> tuple[Results, list[PaperComparison]]:
    """Visual quality."""
    result = run_quality_bench(
        QualityBench(
            photos=setup.photos,
            distractor_photos=setup.distractor_photos,
            out=setup.out,
            distractors=setup.distractors,
            codebooks=[setup.codebook],
            recipes=[recipe for recipe in setup.recipes if recipe != PASSIVE],
        ),
        setup.progress,
    )
    return quality_results.results(result, setup.command), list(_quality_comparisons(result))


def edits(setup: PaperSetup) -> tuple[Results, list[PaperComparison]]:
    """Recall by strength of the edit; the paper shows curves only."""
    result = run_edits_bench(
        EditsBench(
            photos=setup.photos,
            distractor_photos=setup.distractor_photos,
            out=setup.out,
            distractors=setup.distractors,
            codebooks=[setup.codebook],
            recipes=setup.recipes,
        ),
        setup.progress,
    )
    comparisons = []
    for recipe in dict.fromkeys(sweep.recipe for sweep in result.sweeps):
        shares = [row.recall for sweep in result.sweeps if sweep.recipe == recipe for row in sweep.rows]
        mean = f"{sum(shares) / len(shares):.3f}"
        comparisons.append(PaperComparison("recall at rank 1, mean of all strengths of all edits", recipe, 1, mean, ""))
    return edits_results.results(result, setup.command), comparisons


def analysis(setup: PaperSetup) -> tuple[Results, list[PaperComparison]]:
    """Distances to the codes and cells."""
    result = run_analysis_bench(
        AnalysisBench(
            photos=setup.photos,
            distractor_photos=setup.distractor_photos,
            out=setup.out,
            distractors=setup.distractors,
            codebooks=[setup.codebook],
            recipes=setup.recipes,
        ),
        setup.progress,
    )
    comparisons = []
    for row in result.rows:
        comparisons.append(
            PaperComparison("‖x − q(x_o)‖², released files", row.recipe, None, f"{row.released.mean:.3f}", "")
        )
        if row.failure is not None:
            printed = f"{IVF_FAILURE[row.recipe]:.2f}" if row.spec == _PAPER_INDEX and row.recipe in IVF_FAILURE else ""
            comparisons.append(
                PaperComparison("p_f of the random edit", row.recipe, 1, f"{row.failure['random']:.3f}", printed)
            )
    for compatibility in (each.compatibility for each in result.codebook_results if each.compatibility):
        same = "yes" if compatibility.equal else "no"
        comparisons.append(PaperComparison("results for other photos unchanged", compatibility.recipe, 1, same, "yes"))
    return analysis_results.results(result, setup.command), comparisons


PARTS: Mapping[str, Callable[[PaperSetup], tuple[Results, list[PaperComparison]]]] = {
    "retrieval": retrieval,
    "detection": detection,
    "quality": quality,
    "edits": edits,
    "analysis": analysis,
}


def _published(row: RetrievalRow) -> str:
    """The published mean recall for the same index, if any."""
    index = "Flat" if row.probes == "exact" else row.spec
    same = [each for each in TABLE if (each.index, each.probes, each.recipe) == (index, row.probes, row.recipe)]
    return f"{same[0].mean:.2f}" if same else ""


def _quality_comparisons(result: QualityResult) -> list[PaperComparison]:
    comparisons = []
    for row in result.rows:
        spreads = {
            "psnr": (row.psnr, "PSNR, dB", 1),
            "ssim": (row.ssim, "SSIM", 3),
            "linf": (row.linf, "L∞, of 255", 1),
        }
        for name, (ours, what, digits) in spreads.items():
            if ours is None or not row.own_budget:
                continue
            printed = f"{QUALITY[name]:g}" if row.recipe == "paper" else ""
            comparisons.append(PaperComparison(what, row.recipe, None, f"{ours:.{digits}f}", printed))
    return comparisons

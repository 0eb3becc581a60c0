"""The parts of the paper bench: each is another bench in the paper's set-up, with the paper's own figures beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from homing.evaluation.benches import (
    analysis_results,
    detection_results,
    edits_results,
    quality_results,
    retrieval_results,
)
from homing.evaluation.benches.analysis import AnalysisBench, run_analysis_bench
from homing.evaluation.benches.detection import DetectionBench, run_detection_bench
from homing.evaluation.benches.edits import EditsBench, run_edits_bench
from homing.evaluation.benches.quality import QualityBench, QualityResult, run_quality_bench
from homing.evaluation.benches.retrieval import RetrievalBench, Row, run_retrieval_bench
from homing.evaluation.protocol.references import Probes
from homing.evaluation.protocol.setting import PASSIVE
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.published import AVERAGE_PRECISION_GAIN, INDEXES, IVF_FAILURE, QUALITY, TABLE
from homing.evaluation.results import Results

_PAPERS = "IVF4096,PQ8x8"  # the index that most of the paper's figures are of


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What all parts share: folders of photos, descriptors of the other references, and one codebook."""

    photos: Path
    negatives: Path
    background: Path
    strangers: int
    codebook: str
    out: Path
    probes: Sequence[Probes]
    recipes: Sequence[str]
    command: str
    stage: Stage


class Line(NamedTuple):
    """One figure of ours and, where it printed one, the paper's; no probes where nothing was searched for."""

    what: str
    recipe: str
    probes: Probes | None
    ours: str
    published: str


def retrieval(ready: Ready) -> tuple[Results, list[Line]]:
    """How many edited copies come home."""
    result = run_retrieval_bench(
        RetrievalBench(
            photos=ready.photos,
            background=ready.background,
            out=ready.out,
            strangers=ready.strangers,
            codebooks=[ready.codebook],
            probes=ready.probes,
            recipes=ready.recipes,
        ),
        ready.stage,
    )
    lines = [
        Line("recall at rank 1, mean of the edits", row.recipe, row.probes, f"{row.mean:.3f}", _published(row))
        for row in result.rows
    ]
    return retrieval_results.results(result, ready.command), lines


def detection(ready: Ready) -> tuple[Results, list[Line]]:
    """How well copies are told from other photos."""
    result = run_detection_bench(
        DetectionBench(
            photos=ready.photos,
            negatives=ready.negatives,
            background=ready.background,
            out=ready.out,
            strangers=ready.strangers,
            codebooks=[ready.codebook],
            probes=ready.probes,
            recipes=ready.recipes,
        ),
        ready.stage,
    )
    passive = {row.probes: row.average_precision for row in result.rows if row.recipe == PASSIVE}
    lines = []
    for row in result.rows:
        printed = [each for each in INDEXES if (each.index, each.recipe, row.probes) == (row.spec, row.recipe, 1)]
        published = f"{printed[0].average_precision:.2f}" if printed else ""
        lines.append(Line("µAP of the random edit", row.recipe, row.probes, f"{row.average_precision:.3f}", published))
        if row.recipe != PASSIVE and passive.get(row.probes):
            gain = f"× {row.average_precision / passive[row.probes]:.2f}"
            paper = (row.spec, row.recipe, row.probes) == (_PAPERS, "paper", 1)
            published = f"× {AVERAGE_PRECISION_GAIN[43.8]:g}" if paper else ""
            lines.append(Line("µAP against passive's", row.recipe, row.probes, gain, published))
    return detection_results.results(result, ready.command), lines


def quality(ready: Ready) -> tuple[Results, list[Line]]:
    """What activation costs the eye."""
    result = run_quality_bench(
        QualityBench(
            photos=ready.photos,
            background=ready.background,
            out=ready.out,
            strangers=ready.strangers,
            codebooks=[ready.codebook],
            recipes=[recipe for recipe in ready.recipes if recipe != PASSIVE],
        ),
        ready.stage,
    )
    return quality_results.results(result, ready.command), list(_qualities(result))


def edits(ready: Ready) -> tuple[Results, list[Line]]:
    """How strong an edit may be; the paper's are curves, without numbers."""
    result = run_edits_bench(
        EditsBench(
            photos=ready.photos,
            background=ready.background,
            out=ready.out,
            strangers=ready.strangers,
            codebooks=[ready.codebook],
            recipes=ready.recipes,
        ),
        ready.stage,
    )
    lines = []
    for recipe in dict.fromkeys(swept.recipe for swept in result.swept):
        shares = [row.recall for swept in result.swept if swept.recipe == recipe for row in swept.rows]
        mean = f"{sum(shares) / len(shares):.3f}"
        lines.append(Line("recall at rank 1, mean of all strengths of all edits", recipe, 1, mean, ""))
    return edits_results.results(result, ready.command), lines


def analysis(ready: Ready) -> tuple[Results, list[Line]]:
    """Why edited copies come home."""
    result = run_analysis_bench(
        AnalysisBench(
            photos=ready.photos,
            background=ready.background,
            out=ready.out,
            strangers=ready.strangers,
            codebooks=[ready.codebook],
            recipes=ready.recipes,
        ),
        ready.stage,
    )
    lines = []
    for row in result.rows:
        lines.append(Line("‖x − q(x_o)‖², released files", row.recipe, None, f"{row.released.mean:.3f}", ""))
        if row.failure is not None:
            printed = f"{IVF_FAILURE[row.recipe]:.2f}" if row.spec == _PAPERS and row.recipe in IVF_FAILURE else ""
            lines.append(Line("p_f of the random edit", row.recipe, 1, f"{row.failure['random']:.3f}", printed))
    for check in (each.compatibility for each in result.measured if each.compatibility):
        same = "yes" if check.equal else "no"
        lines.append(Line("others' answers stay as they are", check.recipe, 1, same, "yes"))
    return analysis_results.results(result, ready.command), lines


PARTS: Mapping[str, Callable[[Ready], tuple[Results, list[Line]]]] = {
    "retrieval": retrieval,
    "detection": detection,
    "quality": quality,
    "edits": edits,
    "analysis": analysis,
}


def _published(row: Row) -> str:
    """The paper's mean recall for the same index, where it has one."""
    index = "Flat" if row.probes == "exact" else row.spec
    same = [each for each in TABLE if (each.index, each.probes, each.recipe) == (index, row.probes, row.recipe)]
    return f"{same[0].mean:.2f}" if same else ""


def _qualities(result: QualityResult) -> list[Line]:
    lines = []
    for row in result.rows:
        spreads = {
            "psnr": (row.psnr, "PSNR, dB", 1),
            "ssim": (row.ssim, "SSIM", 3),
            "linf": (row.linf, "L∞, of 255", 1),
        }
        for name, (ours, what, digits) in spreads.items():
            if ours is None or not row.own:
                continue
            printed = f"{QUALITY[name]:g}" if row.recipe == "paper" else ""
            lines.append(Line(what, row.recipe, None, f"{ours:.{digits}f}", printed))
    return lines

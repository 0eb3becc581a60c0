"""The gain in recall from activation by index, compared with the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing.bench.benches.retrieval import CodebookRetrieval, RetrievalResult, RetrievalSearch
from homing.bench.protocol.config import PASSIVE
from homing.bench.protocol.report import format_probes
from homing.bench.published import PublishedGain, published_gain
from homing.bench.results import Table
from homing.bench.scores import Interval, gain_interval
from homing.objectives import has_objective

HEADINGS = ["network", "index", "probes", "bytes", "recipe", "passive", "activated", "gain", "95 %", "paper's gain"]


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Mean recall over the edits, passive and activated, of the same photos; `published` is the paper's, if any."""

    codebook: str
    spec: str
    probes: int
    recipe: str
    passive: float
    activated: float
    interval: Interval
    published: PublishedGain | None

    @property
    def gain(self) -> float:
        """Recall activated minus recall passive."""
        return self.activated - self.passive


def gains(codebook_result: CodebookRetrieval) -> list[Gain]:
    """The gain of each recipe over passive, at each number of probes."""
    found = {(each.row.recipe, each.row.probes): each for each in codebook_result.searches}
    return [
        _gain(found[PASSIVE, probes], each, probes)
        for (recipe, probes), each in found.items()
        if recipe != PASSIVE and probes != "exact" and (PASSIVE, probes) in found
    ]


def _gain(passive: RetrievalSearch, activated: RetrievalSearch, probes: int) -> Gain:
    matching = [
        passive.sources.index(source) for source in activated.sources
    ]  # photos that failed to be activated are missing
    before, after = passive.ranks[matching] == 0, activated.ranks == 0
    row = activated.row
    return Gain(
        codebook=row.codebook,
        spec=row.spec,
        probes=probes,
        recipe=row.recipe,
        passive=float(np.mean(before)),
        activated=float(np.mean(after)),
        interval=gain_interval(before, after),
        published=published_gain(row.spec, probes, row.recipe),
    )


def gains_table(result: RetrievalResult) -> Table:
    """A row for each index, recipe and number of probes; an index without support for activation has no gain."""
    rows = []
    for codebook_result in result.codebook_results:
        codebook = codebook_result.run.codebook
        cells = codebook.has_cells
        head = [Path(codebook.extractor).name, codebook.spec]
        size = str(codebook_result.run.references.bytes_per_vector)
        for each in gains(codebook_result):
            values = [f"{each.passive:.3f}", f"{each.activated:.3f}", f"{each.gain:+.3f}"]
            interval = f"{each.interval.low:+.3f} to {each.interval.high:+.3f}"
            paper = "" if each.published is None else f"{each.published.activated - each.published.passive:+.2f}"
            rows.append([*head, format_probes(each.probes, cells), size, each.recipe, *values, interval, paper])
        if not has_objective(codebook):
            alone = [each.row for each in codebook_result.searches if each.row.probes != "exact"]
            rows += [
                [
                    *head,
                    format_probes(row.probes, cells),
                    size,
                    row.recipe,
                    f"{row.mean:.3f}",
                    "",
                    "not supported",
                    "",
                    "",
                ]
                for row in alone
            ]
    return Table(
        name="gains",
        caption="Mean recall at rank 1 over the edits, passive and activated; the gain with its interval (a bootstrap "
        "over photos); and the gain that the paper reports for the same index.",
        headings=HEADINGS,
        rows=rows,
    )

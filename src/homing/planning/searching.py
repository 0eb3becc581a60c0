"""How long a search takes, by references and cells: a line through what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from homing.indexes.base import FAST_CODES, IN_MEMORY, fast_probes
from homing.planning.answer import Latency
from homing.planning.question import CELLS, Question
from homing.planning.rates import below, measured


@dataclass(frozen=True)
class Line:
    """Milliseconds of a search: to begin, for each cell that is looked into, and for each code in it."""

    begin: float
    probe: float
    code: float
    crowding: float
    """How many times as many codes a probe looks at as cells hold on average: fuller ones are asked for more often."""
    spread: float
    """How many times as long as the median the slowest in a hundred take."""
    largest: float
    """References that it was measured with."""

    def milliseconds(self, probes: int, codes: float, cells: int) -> float:
        """The median; other cells are chosen as fast as measured, the rest goes on as it was."""
        begin = self.begin if cells == CELLS else max(0.0, self.begin - _all_centres()) + choose(cells)
        return begin + self.probe * probes + self.code * codes


@cache
def line(engine: str) -> Line:
    """The line of an engine: least squares of what is missed, as shares, no part below 0."""
    rates = below(f"search.{engine}")
    own = [place for place, count in enumerate(rates["references"].numbers) if searched_by(engine, count) == engine]
    rows: list[tuple[float, float]] = []
    times: list[float] = []
    for way in ("one", "default"):
        probes, codes, p50 = (rates[f"{way}_{name}"].numbers for name in ("probes", "codes", "p50"))
        rows += [(probes[place], codes[place]) for place in own]
        times += [p50[place] for place in own]
    terms = np.column_stack([np.ones(len(rows)), np.array(rows)]) / np.array(times)[:, None]
    begin, probe, code = _not_below_zero(terms, np.ones(len(times)))
    if engine != "faiss":  # where all else takes so long that codes are lost in it, they take what FAISS takes at least
        code = max(code, line("faiss").code)
    references = np.array(rates["references"].numbers)
    crowding = np.array(rates["one_codes"].numbers) * CELLS / references
    spreads = np.array(rates["one_p99"].numbers) / np.array(rates["one_p50"].numbers)
    return Line(begin, probe, code, float(np.median(crowding)), float(np.median(spreads)), float(references.max()))


def searched_by(engine: str, references: float) -> str:
    """The engine that searches among so many references: few of a collection in Lance are searched in memory."""
    return "faiss" if references <= IN_MEMORY else engine


def choose(cells: int) -> float:
    """Milliseconds to choose one of so many cells by the faster way: comparing with all centres, or along a graph."""
    counts = measured()["cells.counts"].numbers
    ways = [below("cells")[way].numbers for way in ("flat", "graph")]
    best = [min(each) for each in zip(*ways, strict=True)]
    # Between those measured by the logarithm, as a graph takes; beyond them in proportion, as all centres take.
    known = float(np.interp(np.log(cells), np.log(counts), best))
    return known * max(1.0, cells / counts[-1])


def _all_centres() -> float:
    """Milliseconds to compare with all centres of the codebook that was measured, as its searches begin."""
    place = measured()["cells.counts"].numbers.index(CELLS)
    return measured()["cells.flat"].numbers[place]


def latency(question: Question, references: int, cells: int, probes: int | None) -> Latency:
    """One search among so many references."""
    found = line(searched_by(question.engine, references))
    probes = probes or fast_probes(cells, references)
    codes = min(references, references / cells * probes * found.crowding)
    p50 = found.milliseconds(probes, codes, cells)
    as_measured = cells == CELLS and references <= found.largest
    return Latency(
        references=references,
        cells=cells,
        probes=probes,
        codes=codes,
        p50_ms=p50,
        p99_ms=p50 * found.spread,
        basis="measured" if as_measured else "extrapolated",
    )


def latencies(question: Question) -> list[Latency]:
    """At one probe and by default, or as asked: on the way to all photos, then with other numbers of cells."""
    ways = [question.probes] if question.probes else [1, None]
    sizes = sorted({*(10**power for power in (4, 6, 7, 8, 9) if 10**power < question.photos), question.photos})
    found = [latency(question, size, question.cells, probes) for size in sizes for probes in ways]
    others = [int(each) for each in measured()["cells.counts"].numbers if each > question.cells]
    if question.photos > FAST_CODES * question.cells:  # one probe looks at more codes than are looked at fast
        found += [latency(question, question.photos, cells, probes) for cells in others for probes in ways]
    return list(dict.fromkeys(found))  # where one probe is the default


def searching_cores(question: Question) -> float:
    """Cores that queries keep busy: as measured for the service, and what more references add to a search."""
    rate, at = measured()["serve.searches"], 1_000_000
    one = measured()["machines.none"].number * rate.seconds
    here, there = (latency(question, count, question.cells, question.probes) for count in (question.photos, at))
    return question.queries_per_second * (one + max(0.0, here.p50_ms - there.p50_ms) / 1000)


def _not_below_zero(terms: np.ndarray, wanted: np.ndarray) -> list[float]:
    """Least squares with the smallest share left out as long as one is negative: three terms are few."""
    kept = list(range(terms.shape[1]))
    while True:
        solved = np.linalg.lstsq(terms[:, kept], wanted, rcond=None)[0]
        if (solved >= 0).all():
            return [float(solved[kept.index(term)]) if term in kept else 0.0 for term in range(terms.shape[1])]
        kept.pop(int(solved.argmin()))

"""How long a search takes, by references and cells: a line through what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from homing.estimate.rates import load_rates, rates_under
from homing.estimate.request import CELLS, EstimateRequest
from homing.estimate.result import Latency
from homing.indexes.base import DEFAULT_CODES_SCANNED, MAX_CODES_IN_MEMORY, default_nprobe


@dataclass(frozen=True)
class LatencyModel:
    """Milliseconds of a search: to begin, for each cell that is looked into, and for each code in it."""

    base_ms: float
    probe_ms: float
    code_ms: float
    fill_ratio: float
    """How many times as many codes a probe looks at as cells hold on average: fuller ones are asked for more often."""
    p99_ratio: float
    """How many times as long as the median the slowest in a hundred take."""
    max_references: float
    """References that it was measured with."""

    def milliseconds(self, probes: int, codes: float, cells: int) -> float:
        """The median; other cells are chosen as fast as measured, the rest goes on as it was."""
        begin = self.base_ms if cells == CELLS else max(0.0, self.base_ms - _flat_scan_ms()) + cell_choice_ms(cells)
        return begin + self.probe_ms * probes + self.code_ms * codes


@cache
def latency_model(engine: str) -> LatencyModel:
    """The line of an engine: least squares of what is missed, as shares, no part below 0."""
    rates = rates_under(f"search.{engine}")
    own = [
        index for index, count in enumerate(rates["references"].numbers) if effective_engine(engine, count) == engine
    ]
    rows: list[tuple[float, float]] = []
    times: list[float] = []
    for way in ("one", "default"):
        probes, codes, p50 = (rates[f"{way}_{name}"].numbers for name in ("probes", "codes", "p50"))
        rows += [(probes[index], codes[index]) for index in own]
        times += [p50[index] for index in own]
    terms = np.column_stack([np.ones(len(rows)), np.array(rows)]) / np.array(times)[:, None]
    begin, probe, code = _nonnegative_least_squares(terms, np.ones(len(times)))
    if engine != "faiss":  # where all else takes so long that codes are lost in it, they take what FAISS takes at least
        code = max(code, latency_model("faiss").code_ms)
    references = np.array(rates["references"].numbers)
    fill_ratio = np.array(rates["one_codes"].numbers) * CELLS / references
    p99_ratios = np.array(rates["one_p99"].numbers) / np.array(rates["one_p50"].numbers)
    return LatencyModel(
        begin, probe, code, float(np.median(fill_ratio)), float(np.median(p99_ratios)), float(references.max())
    )


def effective_engine(engine: str, references: float) -> str:
    """The engine that searches among so many references: few of a collection in Lance are searched in memory."""
    return "faiss" if references <= MAX_CODES_IN_MEMORY else engine


def cell_choice_ms(cells: int) -> float:
    """Milliseconds to choose one of so many cells by the faster way: comparing with all centers, or along a graph."""
    counts = load_rates()["cells.counts"].numbers
    ways = [rates_under("cells")[way].numbers for way in ("flat", "graph")]
    best = [min(each) for each in zip(*ways, strict=True)]
    # Between those measured by the logarithm, as a graph takes; beyond them in proportion, as all centers take.
    known = float(np.interp(np.log(cells), np.log(counts), best))
    return known * max(1.0, cells / counts[-1])


def _flat_scan_ms() -> float:
    """Milliseconds to compare with all centers of the codebook that was measured, as its searches begin."""
    index = load_rates()["cells.counts"].numbers.index(CELLS)
    return load_rates()["cells.flat"].numbers[index]


def latency(request: EstimateRequest, references: int, cells: int, probes: int | None) -> Latency:
    """One search among so many references."""
    found = latency_model(effective_engine(request.engine, references))
    probes = probes or default_nprobe(cells, references)
    codes = min(references, references / cells * probes * found.fill_ratio)
    p50 = found.milliseconds(probes, codes, cells)
    as_measured = cells == CELLS and references <= found.max_references
    return Latency(
        references=references,
        cells=cells,
        probes=probes,
        codes_scanned=codes,
        p50_ms=p50,
        p99_ms=p50 * found.p99_ratio,
        basis="measured" if as_measured else "extrapolated",
    )


def latencies(request: EstimateRequest) -> list[Latency]:
    """At one probe and by default, or as asked: on the way to all photos, then with other numbers of cells."""
    ways = [request.probes] if request.probes else [1, None]
    sizes = sorted({*(10**power for power in (4, 6, 7, 8, 9) if 10**power < request.photos), request.photos})
    found = [latency(request, size, request.cells, probes) for size in sizes for probes in ways]
    others = [int(each) for each in load_rates()["cells.counts"].numbers if each > request.cells]
    if request.photos > DEFAULT_CODES_SCANNED * request.cells:  # one probe looks at more codes than are looked at fast
        found += [latency(request, request.photos, cells, probes) for cells in others for probes in ways]
    return list(dict.fromkeys(found))  # where one probe is the default


def search_cores(request: EstimateRequest) -> float:
    """Cores that queries keep busy: as measured for the service, and what more references add to a search."""
    rate, at = load_rates()["serve.searches"], 1_000_000
    one = load_rates()["machines.none"].number * rate.seconds
    here, there = (latency(request, count, request.cells, request.probes) for count in (request.photos, at))
    return request.queries_per_second * (one + max(0.0, here.p50_ms - there.p50_ms) / 1000)


def _nonnegative_least_squares(terms: np.ndarray, wanted: np.ndarray) -> list[float]:
    """Least squares with the smallest share left out as long as one is negative: three terms are few."""
    kept = list(range(terms.shape[1]))
    while True:
        solved = np.linalg.lstsq(terms[:, kept], wanted, rcond=None)[0]
        if (solved >= 0).all():
            return [float(solved[kept.index(term)]) if term in kept else 0.0 for term in range(terms.shape[1])]
        kept.pop(int(solved.argmin()))

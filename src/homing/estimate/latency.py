"""Search latency by references and cells: a linear model fitted to measurements."""

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
    """Linear model of a search in milliseconds: a constant, a term per probed cell, and a term per scanned code."""

    base_ms: float
    probe_ms: float
    code_ms: float
    fill_ratio: float
    """Codes scanned per probe relative to the average cell; above 1, since fuller cells are probed more often."""
    p99_ratio: float
    """99th percentile relative to the median."""
    max_references: float
    """Largest measured number of references."""

    def milliseconds(self, probes: int, codes: float, cells: int) -> float:
        """Median latency. For other numbers of cells, only the time to choose cells changes."""
        begin = self.base_ms if cells == CELLS else max(0.0, self.base_ms - _flat_scan_ms()) + cell_choice_ms(cells)
        return begin + self.probe_ms * probes + self.code_ms * codes


@cache
def latency_model(engine: str) -> LatencyModel:
    """The model of an engine: a nonnegative least-squares fit of relative errors."""
    rates = rates_under(f"search.{engine}")
    own = [
        index for index, count in enumerate(rates["references"].numbers) if effective_engine(engine, count) == engine
    ]
    rows: list[tuple[float, float]] = []
    times: list[float] = []
    for setting in ("one", "default"):
        probes, codes, p50 = (rates[f"{setting}_{name}"].numbers for name in ("probes", "codes", "p50"))
        rows += [(probes[index], codes[index]) for index in own]
        times += [p50[index] for index in own]
    terms = np.column_stack([np.ones(len(rows)), np.array(rows)]) / np.array(times)[:, None]
    begin, probe, code = _nonnegative_least_squares(terms, np.ones(len(times)))
    if engine != "faiss":  # the term per code disappears in the noise there; FAISS's is a lower bound
        code = max(code, latency_model("faiss").code_ms)
    references = np.array(rates["references"].numbers)
    fill_ratio = np.array(rates["one_codes"].numbers) * CELLS / references
    p99_ratios = np.array(rates["one_p99"].numbers) / np.array(rates["one_p50"].numbers)
    return LatencyModel(
        begin, probe, code, float(np.median(fill_ratio)), float(np.median(p99_ratios)), float(references.max())
    )


def effective_engine(engine: str, references: float) -> str:
    """The engine that searches: small collections in Lance are searched in memory, by FAISS."""
    return "faiss" if references <= MAX_CODES_IN_MEMORY else engine


def cell_choice_ms(cells: int) -> float:
    """Milliseconds to choose a cell by the faster method: comparing all centers, or a graph search."""
    counts = load_rates()["cells.counts"].numbers
    methods = [rates_under("cells")[method].numbers for method in ("flat", "graph")]
    best = [min(each) for each in zip(*methods, strict=True)]
    # Interpolated in log(cells), as for a graph search; extrapolated in proportion, as for comparing all centers.
    known = float(np.interp(np.log(cells), np.log(counts), best))
    return known * max(1.0, cells / counts[-1])


def _flat_scan_ms() -> float:
    """Milliseconds to compare all centers of the measured codebook."""
    index = load_rates()["cells.counts"].numbers.index(CELLS)
    return load_rates()["cells.flat"].numbers[index]


def latency(request: EstimateRequest, references: int, cells: int, probes: int | None) -> Latency:
    """Latency of one search among this many references."""
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
    """Latencies with one probe and by default, or with the given probes; at several sizes, then with more cells."""
    probe_settings = [request.probes] if request.probes else [1, None]
    sizes = sorted({*(10**power for power in (4, 6, 7, 8, 9) if 10**power < request.photos), request.photos})
    found = [latency(request, size, request.cells, probes) for size in sizes for probes in probe_settings]
    others = [int(each) for each in load_rates()["cells.counts"].numbers if each > request.cells]
    if request.photos > DEFAULT_CODES_SCANNED * request.cells:  # one probe scans more codes than the default search
        found += [latency(request, request.photos, cells, probes) for cells in others for probes in probe_settings]
    return list(dict.fromkeys(found))  # one probe may be the default


def search_cores(request: EstimateRequest) -> float:
    """Cores kept busy by queries: as measured for the service, plus the extra time of larger collections."""
    rate, at = load_rates()["serve.searches"], 1_000_000
    one = load_rates()["machines.none"].number * rate.seconds
    at_request, at_measured = (latency(request, count, request.cells, request.probes) for count in (request.photos, at))
    return request.queries_per_second * (one + max(0.0, at_request.p50_ms - at_measured.p50_ms) / 1000)


def _nonnegative_least_squares(terms: np.ndarray, wanted: np.ndarray) -> list[float]:
    """Nonnegative least squares for few terms: drop the most negative coefficient until none is negative."""
    columns = list(range(terms.shape[1]))
    while True:
        solved = np.linalg.lstsq(terms[:, columns], wanted, rcond=None)[0]
        if (solved >= 0).all():
            return [float(solved[columns.index(term)]) if term in columns else 0.0 for term in range(terms.shape[1])]
        columns.pop(int(solved.argmin()))

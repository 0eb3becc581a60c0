"""Estimates for large collections: machines, hours, storage, search latency and cost, from measured rates.

Packages that import PyTorch or FAISS are imported in functions: the command line imports this module for its options.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Any, Literal

from homing._options import Option, check_options, setting
from homing.errors import HomingError, UnknownNameError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "PASSIVE",
    "CostItem",
    "Estimate",
    "EstimateRequest",
    "Latency",
    "Prices",
    "Rate",
    "StageEstimate",
    "StorageItem",
    "estimate",
    "load_rates",
]


def __dir__() -> list[str]:
    return sorted(__all__)


DIM, CELLS, CODE_BYTES = 512, 4096, 8  # of the codebook homing-1, with which rates were measured
PASSIVE = "passive"  # instead of a recipe: photos are only added
_BYTES_A_PIXEL = 0.5
_HOURS_A_MONTH = 730
_LIMIT = 1e18  # of a number; the smallest is 1 / _LIMIT
_HALF, _SINGLE, _ID = 2, 4, 8  # bytes per value of a stored descriptor, per value of a center, and per id
_WORDS = 256  # codewords per byte of a code
_ENGINES = ("faiss", "lance")  # those that are measured

Basis = Literal["measured", "extrapolated", "computed", "given"]
"""Measured; extrapolated from measurements; computed from sizes; given by the user."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One measured figure, or several of one kind, as printed on a page of the docs."""

    name: str
    figures: tuple[str, ...]
    unit: str
    page: str
    command: str
    hardware: str
    note: str = ""
    """A caveat, listed among the assumptions of estimates that use this rate."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """All figures, as numbers."""
        return tuple(float(figure.replace(",", "")) for figure in self.figures)

    @property
    def number(self) -> float:
        """The only figure, as a number."""
        (number,) = self.numbers
        return number

    @property
    def seconds(self) -> float:
        """Seconds per item."""
        if self.unit == "a second":
            return 1 / self.number
        return self.number * {"ms": 1e-3, "s": 1, "s a million": 1e-6}[self.unit]


@cache
def load_rates() -> Mapping[str, Rate]:
    """All rates by name, such as activate.h200.homing."""
    document = tomllib.loads(files("homing").joinpath("rates.toml").read_text(encoding="utf-8"))
    sources = document.pop("sources")

    def nested(prefix: str, table: Mapping[str, Any]) -> Iterator[Rate]:
        for key, value in table.items():
            if "source" in value:
                figures = [value["figures"]] if isinstance(value["figures"], str) else value["figures"]
                yield Rate(name=prefix + key, figures=tuple(figures), unit=value["unit"], **sources[value["source"]])
            else:
                yield from nested(f"{prefix}{key}.", value)

    return {rate.name: rate for rate in nested("", document)}


def rates_under(name: str) -> dict[str, Rate]:
    """Rates whose names start with this prefix, by the rest of the name."""
    return {key.removeprefix(f"{name}."): rate for key, rate in load_rates().items() if key.startswith(f"{name}.")}


def _number(help: str, default: Any = MISSING, *, minimum: float = 1 / _LIMIT, **option: Any) -> Any:
    """A number that commands have as an option, of a size at which results stay finite."""
    return setting(Option(help, minimum=minimum, maximum=_LIMIT, **option), default)


def _whole_number(text: str) -> int:
    """Parse a number of photos, such as 1e9."""
    try:
        if (number := float(text)).is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise HomingError(f"--photos takes a whole number, such as 1e9, got {text}")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in any one currency; None if unknown."""

    gpu_hour: float | None = _number("Price of a GPU hour.", None, minimum=0)
    core_hour: float | None = _number("Price of a core hour.", None, minimum=0)
    terabyte_month: float | None = _number("Price of a terabyte month.", None, minimum=0)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class EstimateRequest:
    """Input of `estimate`: photos, machines, index, searches and prices."""

    photos: int = _number("How many photos, such as 1e9.", minimum=1, parser=_whole_number, metavar="NUMBER")
    gpu: str = setting(
        Option("The GPU of each machine: h200, or none.", choices=lambda: rates_under("machines"), kind="GPU"), "none"
    )
    cores: int | None = _number("Cores of each machine without a GPU.", None, minimum=1, default_text="2, as measured")
    recipe: str = setting(Option("The recipe for activation; passive: photos are only added."), "homing")
    megapixels: float = _number("Megapixels of a photo.", 1.0)
    photo_bytes: int | None = _number("Bytes of a photo's file.", None, minimum=1, default_text="half a byte per pixel")
    days: float | None = _number("The deadline, in days.", None, default_text="the time one machine takes")
    cells: int = _number("Cells of the codebook.", CELLS, minimum=1)
    code_bytes: int = _number("Bytes of a code, without its cell.", CODE_BYTES, minimum=1)
    probes: int | None = _number(
        "Cells that a search scans.", None, minimum=1, default_text="as many as hold 20,000 codes"
    )
    engine: str = setting(
        Option("The search engine: faiss or lance.", choices=lambda: _ENGINES, kind="measured engine"), "faiss"
    )
    queries_per_second: float = _number("Searches per second.", 0.0, minimum=0)
    rates: Mapping[str, float] = field(default_factory=dict)
    """Your own rates in photos per second of one machine, by stage."""
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        # Not imported above: commands have the fields as options, and must not wait for PyTorch.
        from homing.activation import resolve_recipe

        check_options(self)
        if self.activates:
            resolve_recipe(self.recipe)
        if self.cores is not None and self.gpu != "none" and self.cores != self.measured_cores:
            raise HomingError(
                f"the rates of an {self.gpu} were measured with {self.measured_cores} cores, got {self.cores};"
                " omit the cores and give your own rates instead, such as activate=PHOTOS_A_SECOND"
            )
        if self.probes is not None and self.probes > self.cells:
            raise HomingError(f"probes must be at most the number of cells, {self.cells:,}; got {self.probes:,}")
        for name, rate in self.rates.items():
            if name not in self.stages:
                raise UnknownNameError("stage", name, self.stages)
            if not 1 / _LIMIT <= rate <= _LIMIT:
                raise HomingError(f"the rate {name} takes a value from {1 / _LIMIT:g} to {_LIMIT:g}, got {rate:g}")

    @property
    def activates(self) -> bool:
        """Whether photos are activated, not only added."""
        return self.recipe != PASSIVE

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of each photo, in order."""
        return (*(("activate",) if self.activates else ("decode", "describe")), "record", "index")

    @property
    def measured_cores(self) -> int:
        """Cores of the measured machine."""
        return int(load_rates()[f"machines.{self.gpu}"].number)

    @property
    def machine_cores(self) -> int:
        """Cores of each machine."""
        return self.cores or self.measured_cores

    @property
    def core_ratio(self) -> float:
        """Time relative to the measured machine, by the number of cores."""
        return self.measured_cores / self.machine_cores

    @property
    def file_bytes(self) -> float:
        """Bytes per file."""
        return self.photo_bytes or self.megapixels * 1e6 * _BYTES_A_PIXEL

    @property
    def extra_megapixels(self) -> float:
        """Megapixels above the size of the measured photos."""
        return max(0.0, self.megapixels - load_rates()["size.measured"].number)


@dataclass(frozen=True, kw_only=True)
class StageEstimate:
    """One processing stage: its time per photo, and for all photos on one machine."""

    name: str
    seconds: float
    """Per photo."""
    hours: float
    """For all photos, on one machine."""
    parallel: bool
    """Whether the stage runs on all machines; otherwise one machine runs it."""
    basis: Basis
    sources: Sequence[str]
    notes: Sequence[str]
    """Caveats of the rates used."""


@dataclass(frozen=True)
class StorageItem:
    """One kind of stored data."""

    name: str
    where: Literal["bucket", "disk", "memory"]
    bytes: float
    basis: Basis


@dataclass(frozen=True)
class Latency:
    """Latency of one search, from a descriptor to the nearest references."""

    references: int
    cells: int
    probes: int
    codes_scanned: float
    p50_ms: float
    p99_ms: float
    basis: Basis


@dataclass(frozen=True)
class CostItem:
    """One item of the bill."""

    name: str
    amount: float
    unit: Literal["GPU-hours", "core-hours", "terabyte-months"]
    period: Literal["once", "month"]
    cost: float | None
    """None if no price was given."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The whole estimate."""

    request: EstimateRequest
    stages: Sequence[StageEstimate]
    machines: int
    hours: float
    """From start to end, on `machines` machines."""
    bottleneck: str
    """The stage that takes longest on `machines` machines."""
    max_machines: int
    """More machines would wait for the stages that run on one machine."""
    meets_deadline: bool | None
    """Whether the requested number of days is met; None if none was requested."""
    megabytes_per_second: float
    """Read and written by each machine, in total."""
    storage: Sequence[StorageItem]
    search: Sequence[Latency]
    search_cores: float
    """Cores kept busy by queries."""
    cost_items: Sequence[CostItem]
    assumptions: Sequence[str]


def estimate(request: EstimateRequest) -> Estimate:
    """Estimate machines, hours, storage, search latency and cost items, and list the assumptions."""
    stages = _stages(request)
    shared = sum(stage.hours for stage in stages if stage.parallel)
    record, index = (stage.hours for stage in stages if not stage.parallel)
    wanted = None if request.days is None else 24 * request.days
    # Recording overlaps with the parallel stages; the index is built after all photos are recorded.
    left = math.inf if wanted is None else wanted - index
    # More machines than this would wait for the single writer.
    most = max(1, math.ceil(shared / record))
    machines = min(most, max(1, math.ceil(shared / left))) if left > 0 else most
    hours = max(shared / machines, record) + index
    traffic = request.photos * request.file_bytes * (2 if request.activates else 1)  # read and written
    parts, searches, cores = storage(request), latencies(request), _search_cores(request)
    return Estimate(
        request=request,
        stages=stages,
        machines=machines,
        hours=hours,
        bottleneck=max(stages, key=lambda stage: stage.hours / (machines if stage.parallel else 1)).name,
        max_machines=most,
        meets_deadline=None if wanted is None else hours <= wanted * (1 + 1e-9),
        megabytes_per_second=traffic / (hours * 3600 * machines) / 1e6,
        storage=parts,
        search=searches,
        search_cores=cores,
        cost_items=_cost_items(request, shared, parts, cores),
        assumptions=list(_assumptions(request, stages, searches)),
    )


def _stages(request: EstimateRequest) -> list[StageEstimate]:
    """All stages in order: those that run on all machines, then the single writer and the index."""
    rates, lance = load_rates(), request.engine == "lance"
    kind = "activated" if request.activates else "passive"
    record = rates[f"record.lance.{kind}" if lance else f"record.{kind}"]
    built = rates["search.lance.save" if lance else "index.build"]
    index = built.numbers[-1] / rates["search.lance.references"].numbers[-1] if lance else built.seconds
    return [
        *([_activate(request)] if request.activates else _decode_and_describe(request)),
        # In Lance writers run in parallel, but their commits are serialized.
        _stage(request, "record", record.seconds, [record], measured=not lance, parallel=False),
        _stage(request, "index", index, [built], measured=True, parallel=False),
    ]


def _activate(request: EstimateRequest) -> StageEstimate:
    """Activation from file to file: the rate of the recipe, plus CPU time for larger photos."""
    from homing.activation import RECIPES

    known = rates_under(f"activate.{request.gpu}")
    is_known = request.recipe in known
    if is_known:
        seconds = known[request.recipe].seconds
    else:
        passes = {name: recipe.steps * recipe.eot_samples for name, recipe in RECIPES.items()}  # of the network
        points = sorted((passes[name], rate.seconds) for name, rate in known.items())
        seconds = max(0.0, _interpolate(passes[request.recipe], points))
    more = _core_seconds_per_megapixel() * request.extra_megapixels / request.machine_cores
    sources = [*known.values(), *(rates_under("size").values() if request.extra_megapixels else ())]
    measured = is_known and not request.extra_megapixels and request.core_ratio == 1
    return _stage(request, "activate", seconds * request.core_ratio + more, sources, measured=measured)


def _core_seconds_per_megapixel() -> float:
    """Core-seconds per additional megapixel: decoding, processing, writing and the release check."""
    rates = load_rates()
    small, large = rates["size.megapixels"].numbers
    fast, slow = rates["size.activate"].numbers
    processing = rates["machines.none"].number * (slow - fast) / 1000 / (large - small)
    return processing + rates["add.decode"].seconds / rates["size.measured"].number


def _decode_and_describe(request: EstimateRequest) -> list[StageEstimate]:
    """The two stages of photos that are not activated; only decoding depends on the size of photos."""
    rates, cores = load_rates(), request.machine_cores
    decode, describe = rates["add.decode"], rates[f"add.{request.gpu}"]
    decoding = decode.seconds * max(1.0, request.megapixels / rates["size.measured"].number) / cores
    as_measured = request.gpu == "none" and request.core_ratio == 1
    return [
        _stage(request, "decode", decoding, [decode], measured=not request.extra_megapixels and cores == 1),
        _stage(request, "describe", describe.seconds * request.core_ratio, [describe], measured=as_measured),
    ]


def _stage(
    request: EstimateRequest, name: str, seconds: float, rates: list[Rate], *, measured: bool, parallel: bool = True
) -> StageEstimate:
    basis: Basis = "measured" if measured else "extrapolated"
    if name in request.rates:
        seconds, basis, rates = 1 / request.rates[name], "given", []
    return StageEstimate(
        name=name,
        seconds=seconds,
        hours=request.photos * seconds / 3600,
        parallel=parallel,
        basis=basis,
        sources=sorted({f"{rate.command} on {rate.hardware}" for rate in rates}),
        notes=sorted({rate.note for rate in rates if rate.note}),
    )


def _interpolate(x: float, points: Sequence[tuple[float, float]]) -> float:
    """Piecewise linear interpolation, extrapolated at both ends."""
    index = min(max(sum(x > each for each, _ in points), 1), len(points) - 1)
    (left, low), (right, high) = points[index - 1 : index + 1]
    return low + (high - low) * (x - left) / (right - left)


def storage(request: EstimateRequest) -> list[StorageItem]:
    """Data in buckets, on the collection's disk, and in the memory of each search machine."""
    photos, lance = request.photos, request.engine == "lance"
    where: Literal["bucket", "disk"] = "bucket" if lance else "disk"
    centers = (request.cells + _WORDS) * DIM * _SINGLE  # of cells, and codewords
    index = photos * (_ID + request.code_bytes) + centers
    tables = request.cells * request.code_bytes * _WORDS * _SINGLE  # which FAISS precomputes
    searching = load_rates()["serve.memory"].number * 1e6
    found = [StorageItem(name, where, photos * each, "measured") for name, each in _catalog_bytes(request).items()]
    if request.activates:
        found.insert(0, StorageItem("released files", "bucket", photos * request.file_bytes, "computed"))
    # Lance caches what it has read, as memory allows.
    loaded, size = ("centers of cells", centers) if lance else ("index", index + tables)
    return [
        *found,
        StorageItem("snapshot of the index", where, index, "computed"),
        StorageItem("process that searches", "memory", searching, "measured"),
        StorageItem(loaded, "memory", size, "computed"),
    ]


def _catalog_bytes(request: EstimateRequest) -> dict[str, float]:
    """Bytes per photo in the catalog; the total is measured, except for other code sizes."""
    lance, kind = request.engine == "lance", "activated" if request.activates else "passive"
    rate = load_rates()[f"catalog.lance.{kind}" if lance else f"catalog.{kind}"]
    descriptors = DIM * ((_SINGLE if lance else _HALF) + (_HALF if request.activates else 0))
    rest = rate.number - descriptors - CODE_BYTES - _cell_bytes(CELLS)
    return {
        "catalog: descriptors": descriptors,
        "catalog: codes": request.code_bytes + _cell_bytes(request.cells),
        "catalog: hashes, names, releases" if request.activates else "catalog: hashes, names": rest,
    }


def _cell_bytes(cells: int) -> int:
    """Bytes of the cell number in front of a code."""
    return ((cells - 1).bit_length() + 7) // 8


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
        base = self.base_ms
        if cells != CELLS:
            counts, flat = (load_rates()[f"cells.{name}"].numbers for name in ("counts", "flat"))
            base = max(0.0, base - flat[counts.index(CELLS)]) + cell_choice_ms(cells)
        return base + self.probe_ms * probes + self.code_ms * codes


@cache
def latency_model(engine: str) -> LatencyModel:
    """The model of an engine: a nonnegative least-squares fit of relative errors."""
    rates = {name: rate.numbers for name, rate in rates_under(f"search.{engine}").items() if name != "save"}
    references = rates["references"]
    rows = [
        tuple(rates[f"{search}_{name}"][index] for name in ("probes", "codes", "p50"))
        for search in ("one", "default")
        for index, count in enumerate(references)
        if _effective_engine(engine, count) == engine
    ]
    base, probe, code = _nonnegative_least_squares(
        [(1 / p50, probes / p50, codes / p50) for probes, codes, p50 in rows]
    )
    if engine != "faiss":  # the term per code disappears in the noise there; FAISS's is a lower bound
        code = max(code, latency_model("faiss").code_ms)
    return LatencyModel(
        base_ms=base,
        probe_ms=probe,
        code_ms=code,
        fill_ratio=median(codes * CELLS / count for codes, count in zip(rates["one_codes"], references, strict=True)),
        p99_ratio=median(p99 / p50 for p99, p50 in zip(rates["one_p99"], rates["one_p50"], strict=True)),
        max_references=max(references),
    )


def _nonnegative_least_squares(rows: Sequence[tuple[float, ...]]) -> list[float]:
    """Weights of the columns, none negative, with which each row sums to about 1.

    The most negative weight is dropped until there is none; SciPy, which has this, would be needed for it alone.
    """
    import numpy as np

    terms = np.array(rows)
    columns, weights = list(range(terms.shape[1])), np.full(terms.shape[1], -1.0)
    while (weights < 0).any():
        solved = np.linalg.lstsq(terms[:, columns], np.ones(len(terms)), rcond=None)[0]
        weights[:] = 0
        weights[columns] = solved
        columns.pop(int(solved.argmin()))
    return [float(weight) for weight in weights]


def _effective_engine(engine: str, references: float) -> str:
    """The engine that searches: small collections in Lance are searched in memory, by FAISS."""
    from homing.indexes.base import MAX_CODES_IN_MEMORY

    return "faiss" if references <= MAX_CODES_IN_MEMORY else engine


def cell_choice_ms(cells: int) -> float:
    """Milliseconds to choose a cell by the faster method: comparing all centers, or a graph search."""
    counts, flat, graph = (load_rates()[f"cells.{name}"].numbers for name in ("counts", "flat", "graph"))
    points = [(math.log(count), min(each)) for count, *each in zip(counts, flat, graph, strict=True)]
    # Interpolated in log(cells), as for a graph search; extrapolated in proportion, as for comparing all centers.
    known = _interpolate(math.log(min(max(cells, counts[0]), counts[-1])), points)
    return known * max(1.0, cells / counts[-1])


def latency(request: EstimateRequest, references: int, cells: int, probes: int | None) -> Latency:
    """Latency of one search among this many references."""
    from homing.indexes.base import default_nprobe

    model = latency_model(_effective_engine(request.engine, references))
    probes = probes or default_nprobe(cells, references)
    codes = min(references, references / cells * probes * model.fill_ratio)
    p50 = model.milliseconds(probes, codes, cells)
    basis: Basis = "measured" if cells == CELLS and references <= model.max_references else "extrapolated"
    return Latency(references, cells, probes, codes, p50, p50 * model.p99_ratio, basis)


def latencies(request: EstimateRequest) -> list[Latency]:
    """Latencies with one probe and by default, or with the given probes; at several sizes, then with more cells."""
    from homing.indexes.base import DEFAULT_CODES_SCANNED

    sizes = sorted({*(10**power for power in (4, 6, 7, 8, 9) if 10**power < request.photos), request.photos})
    settings = [(size, request.cells) for size in sizes]
    if request.photos > DEFAULT_CODES_SCANNED * request.cells:  # one probe scans more codes than the default search
        counts = load_rates()["cells.counts"].numbers
        settings += [(request.photos, int(count)) for count in counts if count > request.cells]
    probe_counts = [request.probes] if request.probes else [1, None]
    found = [latency(request, *each, probes) for each in settings for probes in probe_counts]
    return list(dict.fromkeys(found))  # one probe may be the default


def _search_cores(request: EstimateRequest) -> float:
    """Cores kept busy by queries: as measured for the service, plus the extra time of larger collections."""
    rates, measured_references = load_rates(), 1_000_000
    one = rates["machines.none"].number * rates["serve.searches"].seconds
    at_request, at_measured = (
        latency(request, count, request.cells, request.probes).p50_ms for count in (request.photos, measured_references)
    )
    return request.queries_per_second * (one + max(0.0, at_request - at_measured) / 1000)


def _cost_items(request: EstimateRequest, shared: float, parts: Sequence[StorageItem], cores: float) -> list[CostItem]:
    """Cost items: those with a price first, most expensive first; then hours of work, then storage by size."""
    prices = request.prices

    def item(name: str, amount: float, unit: Any, period: Any, price: float | None) -> CostItem:
        return CostItem(name, amount, unit, period, None if price is None else amount * price)

    work = " and ".join(name for name in request.stages if name not in ("record", "index"))
    found = [item(work, shared * request.machine_cores, "core-hours", "once", prices.core_hour)]
    if request.gpu != "none":
        found.insert(0, item(work, shared, "GPU-hours", "once", prices.gpu_hour))
    if cores:
        found.append(item("search", cores * _HOURS_A_MONTH, "core-hours", "month", prices.core_hour))
    terabytes: dict[str, float] = {}
    for part in parts:
        if part.where != "memory":
            name = part.name.partition(":")[0]
            terabytes[name] = terabytes.get(name, 0.0) + part.bytes / 1e12
    for name, amount in sorted(terabytes.items(), key=lambda each: -each[1]):
        found.append(item(name, amount, "terabyte-months", "month", prices.terabyte_month))
    return sorted(found, key=lambda each: 1.0 if each.cost is None else -each.cost)


def _assumptions(
    request: EstimateRequest, stages: Sequence[StageEstimate], searches: Sequence[Latency]
) -> Iterator[str]:
    """The assumptions of the estimate."""
    yield "Time grows linearly with photos and falls linearly with machines; machines do not wait for each other."
    yield "Storage and network keep up with the machines; their throughput was not measured."
    yield from dict.fromkeys(note for stage in stages for note in stage.notes)
    cores, known = request.machine_cores, request.measured_cores
    if request.gpu == "none" and cores != known:
        yield f"{cores} cores process {cores / known:g} times as many photos as {known} cores."
    if request.extra_megapixels and not request.activates:
        yield "Decoding time grows in proportion to pixels."
    if request.photo_bytes is None:
        yield f"Files of {request.file_bytes / 1e6:.3g} MB, half a byte per pixel; released files have the same size."
    else:
        yield "Released files have the size of the originals."
    yield "One collection has one writer, which records photos in batches of 16; originals are not copied."
    measured = latency_model(request.engine).max_references
    if request.photos > measured:
        yield (
            f"Above {measured:,.0f} references, search times are extrapolated linearly from measurements in"
            " memory; re-ranking, which reads descriptors from the catalog, is not included."
        )
    if any(latency.cells != CELLS for latency in searches):
        yield (
            "Other numbers of cells: the time to choose a cell was measured with synthetic centers; such a codebook"
            " must be trained and its recall measured."
        )
    if any(stage.basis == "given" for stage in stages):
        yield "Rates with the basis given are yours, for one machine."

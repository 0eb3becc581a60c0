"""The loop alone: milliseconds per photo and memory, of the plain loop and of the engine."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TypeVar

import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._batching import map_by_shape
from homing._io.device import memory_in_use
from homing.activation import RECIPES, Recipe
from homing.activation.batch import Loop
from homing.activation.optimize import NetworkInputs, gradient_descent, optimize
from homing.codebooks import Codebook
from homing.errors import HomingError
from homing.evaluation.plain_loop import plain, plain_descent
from homing.extractors import Extractor, NetworkExtractor, describe
from homing.objectives import objective_for
from homing.photo import Photo

Item = TypeVar("Item")
MB = 2**20


@dataclass(frozen=True)
class LoopConfig:
    """A loop, and the recipe that it runs."""

    recipe: Recipe
    loop: Loop = optimize

    @property
    def name(self) -> str:
        """The recipe's: the plain loop has one of its own."""
        return self.recipe.name


PLAIN = LoopConfig(replace(RECIPES["paper"], name="plain", summary="the paper's, in the plain loop"), plain)


@dataclass(frozen=True, kw_only=True)
class LoopRow:
    """One way with batches of one size: the median of its rounds, and the memory that it took beyond what was held."""

    name: str
    batch: int
    ms: float
    rounds: list[float]
    memory_mb: float | None


def time_loops(
    loop_configs: Sequence[LoopConfig],
    images: Sequence[Tensor],
    *,
    batches: Sequence[int],
    rounds: int,
    extractor: Extractor,
    codebook: Codebook,
    advance: Callable[[], None],
) -> list[LoopRow]:
    """Time each way on the same batch of each size; they take turns, so that other work on the machine slows all.

    On a GPU the engine's network is compiled: the first round, in which that happens, is not counted. A batch that has
    space for more views than there are holds some of them more than once.
    """
    if isinstance(extractor, NetworkExtractor):
        extractor = extractor.compiled()  # the plain loop takes the network as it was given all the same
    rows = []
    for batch in batches:
        calls = {config.name: _call(config, _filled(images, batch), extractor, codebook) for config in loop_configs}
        ms_per_photo: dict[str, list[float]] = {name: [] for name in calls}
        memory: dict[str, float | None] = dict.fromkeys(calls)
        for _ in range(rounds + 1):
            for name, call in calls.items():
                with _gpu_memory(extractor.device) as peak:
                    ms_per_photo[name].append(1000 * _seconds(call, extractor.device) / batch)
                memory[name] = peak.mb
                advance()
        rows += [
            LoopRow(name=name, batch=batch, ms=median(counted), rounds=counted, memory_mb=memory[name])
            for name, (_, *counted) in ms_per_photo.items()
        ]
    return rows


def measure_memory(
    rows: Sequence[LoopRow],
    loop_configs: Sequence[LoopConfig],
    photos: Sequence[Path],
    *,
    codebook: str,
    advance: Callable[[], None],
) -> list[LoopRow]:
    """The rows with the memory of each on a CPU, in a process of its own: what others left behind does not count."""
    known = {config.name: config for config in loop_configs}
    measured = []
    context = get_context("forkserver")  # whose processes are as new as can be, and need not import all this again
    context.set_forkserver_preload([__name__])
    for row in rows:
        try:
            with ProcessPoolExecutor(1, mp_context=context, initializer=_ignore_interrupts) as pool:
                peak = pool.submit(_peak_mb, known[row.name], _filled(photos, row.batch), codebook).result()
        except BrokenProcessPool as error:
            raise HomingError(f"the memory does not suffice for batches of {row.batch}; give smaller ones") from error
        measured.append(replace(row, memory_mb=peak))
        advance()
    return measured


def _ignore_interrupts() -> None:
    """They are the parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _peak_mb(config: LoopConfig, photos: Sequence[Path], codebook: str) -> float:
    """How far the memory of the process rises above what network and photos take."""
    book = codebooks.load(codebook)
    extractor = extractors.load(book.extractor)
    call = _call(config, [Photo.load(photo).pixels() for photo in photos], extractor, book)
    Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak so far
    before = memory_in_use(peak=True)
    call()
    return (memory_in_use(peak=True) - before) / MB


@dataclass
class _Peak:
    mb: float | None = None


@contextmanager
def _gpu_memory(device: torch.device) -> Iterator[_Peak]:
    """How far the GPU's memory in use rises meanwhile; of a CPU nothing is known from inside."""
    peak = _Peak()
    if device.type != "cuda":
        yield peak
        return
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    yield peak
    peak.mb = (torch.cuda.max_memory_allocated() - before) / MB


def _call(
    config: LoopConfig, images: Sequence[Tensor], extractor: Extractor, codebook: Codebook
) -> Callable[[], object]:
    """The loop from what lies on the device, photos and pixel bounds, to what these are to be filled with."""
    originals = describe(extractor, images).to(extractor.device)
    objective = objective_for(codebook, originals, config.recipe.objective)
    pixel_bounds = map_by_shape(config.recipe.budget.pixel_bounds, images)
    if config == PLAIN:
        on_device = [[each.to(extractor.device) for each in some] for some in (images, pixel_bounds)]
        return partial(plain_descent, *on_device, extractor=extractor, objective=objective, recipe=config.recipe)
    inputs = NetworkInputs.of(images, pixel_bounds, extractor)
    return partial(gradient_descent, inputs, extractor=extractor, objective=objective, recipe=config.recipe)


def _filled(some: Sequence[Item], batch: int) -> list[Item]:
    return list(islice(cycle(some), batch))


def _seconds(call: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started

"""The paper's loop, implemented directly; milliseconds per photo and memory of it and of the loop of homing."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._tensors import map_by_shape, memory_in_use
from homing.activation import RECIPES, Recipe
from homing.activation.optimize import NetworkInputs, gradient_descent, optimize
from homing.activation.pipeline import Loop
from homing.codebooks import Codebook
from homing.errors import HomingError
from homing.extractors import Extractor, NetworkExtractor, describe_images
from homing.objectives import Objective, objective_for
from homing.perception.budgets import is_grayscale
from homing.photo import Photo

Item = TypeVar("Item")
MB = 2**20


def plain(images: Sequence[Tensor], *, extractor: Extractor, objective: Objective, recipe: Recipe) -> list[Tensor]:
    """The change of each (3, H, W) image, by `plain_descent`."""
    originals = [pixels.to(extractor.device) for pixels in images]
    pixel_bounds = [recipe.budget.pixel_bound(original) for original in originals]
    changes = plain_descent(originals, pixel_bounds, extractor=extractor, objective=objective, recipe=recipe)
    return [change.to(pixels.device) for change, pixels in zip(changes, images, strict=True)]


def plain_descent(
    originals: Sequence[Tensor],
    pixel_bounds: Sequence[Tensor],
    *,
    extractor: Extractor,
    objective: Objective,
    recipe: Recipe,
) -> list[Tensor]:
    """I = I_o + pixel_bound · tanh(δ), with δ of the photo's size, initially 0; Adam, in single precision.

    Only steps, lr and image_weight of the recipe are used, as in recipe paper. Layers of the network are not fused.
    """
    network = extractor.unfolded() if isinstance(extractor, NetworkExtractor) else extractor
    # Gray photos stay gray: one change for all channels.
    deltas = [
        torch.zeros_like(bound[: 1 if is_grayscale(original[None]) else 3], requires_grad=True)
        for original, bound in zip(originals, pixel_bounds, strict=True)
    ]

    def changes() -> list[Tensor]:
        return [bound * torch.tanh(delta) for bound, delta in zip(pixel_bounds, deltas, strict=True)]

    adam = torch.optim.Adam(deltas, lr=recipe.lr)
    # TF32 would round the inputs of convolutions to 10 bits on recent GPUs.
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for _ in range(recipe.steps):
            changed = changes()
            images = [original + change for original, change in zip(originals, changed, strict=True)]
            descriptors = network(torch.stack([network.resize(image) for image in images]))
            image_loss = torch.stack([change.square().mean() for change in changed])
            adam.zero_grad()
            (objective(descriptors) + recipe.image_weight * image_loss).sum().backward()  # type: ignore[no-untyped-call]
            adam.step()
        with torch.no_grad():
            return changes()


@dataclass(frozen=True)
class LoopConfig:
    """A loop and its recipe."""

    recipe: Recipe
    loop: Loop = optimize

    @property
    def name(self) -> str:
        """The name of the recipe; that of the plain loop is 'plain'."""
        return self.recipe.name


PLAIN = LoopConfig(replace(RECIPES["paper"], name="plain", summary="recipe paper in the plain loop"), plain)


def time_loops(
    loop_configs: Sequence[LoopConfig],
    images: Sequence[Tensor],
    *,
    batches: Sequence[int],
    rounds: int,
    extractor: Extractor,
    codebook: Codebook,
    advance: Callable[[], None],
) -> list[dict[str, Any]]:
    """Time each loop on the same batch of each size; loops alternate, so that other load affects all of them.

    On a GPU homing's network is compiled in the first round, which is not counted. A batch larger than the number
    of images repeats some of them.
    """
    if isinstance(extractor, NetworkExtractor):
        extractor = extractor.compiled()  # the plain loop uses the network without compilation
    rows = []
    for batch in batches:
        some = _repeat_to_size(images, batch)
        calls = {config.name: _call(config, some, extractor, codebook) for config in loop_configs}
        ms_per_photo: dict[str, list[float]] = {name: [] for name in calls}
        memory: dict[str, float | None] = dict.fromkeys(calls)
        for _ in range(rounds + 1):
            for name, call in calls.items():
                seconds, memory[name] = _timed(call, extractor.device)
                ms_per_photo[name].append(1000 * seconds / batch)
                advance()
        rows += [
            {"name": name, "batch": batch, "ms": median(counted), "rounds": counted, "memory_mb": memory[name]}
            for name, (_, *counted) in ms_per_photo.items()
        ]
    return rows


def measure_memory(
    rows: Sequence[dict[str, Any]],
    loop_configs: Sequence[LoopConfig],
    photos: Sequence[Path],
    *,
    codebook: str,
    advance: Callable[[], None],
) -> None:
    """Add the memory of each loop on a CPU to its row, measured in a new process."""
    known = {config.name: config for config in loop_configs}
    context = get_context("forkserver")  # its processes share nothing with this one, but have all modules imported
    context.set_forkserver_preload([__name__])
    for row in rows:
        try:
            with ProcessPoolExecutor(1, mp_context=context, initializer=_ignore_interrupts) as pool:
                batch = _repeat_to_size(photos, row["batch"])
                row["memory_mb"] = pool.submit(_peak_mb, known[row["name"]], batch, codebook).result()
        except BrokenProcessPool as error:
            raise HomingError(f"not enough memory for batches of {row['batch']}; give smaller --batches") from error
        advance()


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _peak_mb(config: LoopConfig, photos: Sequence[Path], codebook: str) -> float:
    """Peak memory of the process above that of network and photos, in MB."""
    book = codebooks.load(codebook)
    extractor = extractors.load(book.extractor)
    call = _call(config, [Photo.load(photo).pixels() for photo in photos], extractor, book)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak (Linux)
    before = memory_in_use(peak=True)
    call()
    return (memory_in_use(peak=True) - before) / MB


def _call(
    config: LoopConfig, images: Sequence[Tensor], extractor: Extractor, codebook: Codebook
) -> Callable[[], object]:
    """A call of the loop alone: photos and pixel bounds are already on the device."""
    originals = describe_images(extractor, images).to(extractor.device)
    objective = objective_for(codebook, originals, config.recipe.objective)
    pixel_bounds = map_by_shape(config.recipe.budget.pixel_bounds, images)
    if config == PLAIN:
        on_device = [[each.to(extractor.device) for each in items] for items in (images, pixel_bounds)]
        return partial(plain_descent, *on_device, extractor=extractor, objective=objective, recipe=config.recipe)
    inputs = NetworkInputs.of(images, pixel_bounds, extractor)
    return partial(gradient_descent, inputs, extractor=extractor, objective=objective, recipe=config.recipe)


def _repeat_to_size(items: Sequence[Item], batch: int) -> list[Item]:
    return list(islice(cycle(items), batch))


def _timed(call: Callable[[], object], device: torch.device) -> tuple[float, float | None]:
    """Seconds of a call, and its peak GPU memory above that before, in MB; None on a CPU."""
    if device.type != "cuda":
        started = time.perf_counter()
        call()
        return time.perf_counter() - started, None
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    return seconds, (torch.cuda.max_memory_allocated() - before) / MB

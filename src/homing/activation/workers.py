"""Worker processes that decode, activate and encode photos on one GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import torch

from homing import extractors
from homing._io.parallel import MIN_ITEMS_FOR_PROCESSES, cores, process_map
from homing.activation.batch import activate_batch
from homing.activation.pipeline import batch_size_for, run_batch, split_into_batches
from homing.activation.recipe import Recipe
from homing.activation.release_check import Activation
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, NetworkExtractor
from homing.photo import Photo

Item = TypeVar("Item")
Other = TypeVar("Other")

_CHUNK_PHOTOS = 64  # photos sent to a worker and activated together
_CHUNK_BYTES = 16 * 2**20  # of their files
_MIN_PASSES_TO_COMPILE = 500_000  # of the network
_PRELOADED_MODULES = (__name__, "homing.extractors.timm_models")  # the latter takes longest of all
_GPU_BYTES_PER_PROCESS = 8 * 2**30  # 256 images in the loop, a batch of photos, and CUDA itself


@dataclass(frozen=True)
class EncodedPhoto:
    """The bytes of a photo's file; the worker decodes them."""

    name: str
    data: bytes


@dataclass(frozen=True)
class ActivateFiles:
    """Settings of an activation; the extractor is the one that the codebook names."""

    codebook: Codebook
    recipe: Recipe
    format: str | None
    compiled: bool = False
    device: str | None = None
    """The extractor's device; by default a GPU if there is one."""
    graphics: bool = False
    """Whether graphics of few colors are activated too."""

    def __call__(self, items: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Each item with the result for its file or photo; anything else is passed on."""
        extractor = cached_extractor(self.codebook.extractor, self.device, compiled=self.compiled)
        activate_files = partial(
            activate_batch,
            extractor=extractor,
            codebook=self.codebook,
            recipe=self.recipe,
            format=self.format,
            graphics=self.graphics,
        )
        decoded: Iterable[tuple[Any, Any]] = (
            (item, _decode(file) if isinstance(file, EncodedPhoto) else file) for item, file in items
        )
        return [
            pair
            for batch in split_into_batches(decoded, batch_size_for(extractor.device))
            for pair in run_batch(batch, activate_files)
        ]


def use_processes(photos: int, device: torch.device) -> bool:
    """Whether worker processes, which take half a minute to start, pay off."""
    return device.type == "cuda" and photos >= MIN_ITEMS_FOR_PROCESSES


def should_compile(photos: int, recipe: Recipe) -> bool:
    """Whether compiling, which takes half a minute, pays off."""
    return photos * recipe.steps * recipe.eot_samples >= _MIN_PASSES_TO_COMPILE


def map_in_workers(
    items: Iterable[tuple[Item, EncodedPhoto | Other]], work: ActivateFiles
) -> Iterator[list[tuple[Item, Activation | PhotoError | Other]]]:
    """The results of the items, one list per chunk."""
    yield from process_map(work, _chunks(items), modules=_PRELOADED_MODULES, processes=_max_processes())


def _max_processes() -> int:
    """One process per core, limited by the memory of the GPU."""
    if not torch.cuda.is_available():
        return cores()
    free, _ = torch.cuda.mem_get_info()
    return max(1, min(cores(), free // _GPU_BYTES_PER_PROCESS))


def _chunks(items: Iterable[tuple[Item, EncodedPhoto | Other]]) -> Iterator[list[tuple[Item, EncodedPhoto | Other]]]:
    chunk: list[tuple[Item, EncodedPhoto | Other]] = []
    size = 0
    for item, file in items:
        chunk.append((item, file))
        size += len(file.data) if isinstance(file, EncodedPhoto) else 0
        if len(chunk) == _CHUNK_PHOTOS or size > _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@lru_cache(maxsize=1)
def cached_extractor(name: str, device: str | None = None, *, compiled: bool = False) -> Extractor:
    """The extractor, loaded once per worker."""
    extractor = extractors.load(name, device)
    return extractor.compiled() if compiled and isinstance(extractor, NetworkExtractor) else extractor


def _decode(file: EncodedPhoto) -> Photo | PhotoError:
    try:
        return Photo.decode(file.data, file.name)
    except PhotoError as error:
        return error

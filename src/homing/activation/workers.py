"""Very many photos on one GPU: worker processes that each read, activate and write some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import torch

from homing import extractors
from homing._io.parallel import MIN_ITEMS_FOR_PROCESSES, cores, process_map
from homing.activation.batch import activate
from homing.activation.pipeline import batch_size_for, run_batch, split_into_batches
from homing.activation.recipe import Recipe
from homing.activation.release_check import Activation
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, NetworkExtractor
from homing.photo import Photo

Item = TypeVar("Item")
Other = TypeVar("Other")

_CHUNK_PHOTOS = 64  # photos that travel together, and are moved together
_CHUNK_BYTES = 16 * 2**20  # of their files
_MIN_PASSES_TO_COMPILE = 500_000  # of the network
_PRELOADED_MODULES = (__name__, "homing.extractors.timm_models")  # the latter takes longest of all
_GPU_BYTES_PER_PROCESS = (
    8 * 2**30
)  # that a process may take: 256 images in the loop, a batch of photos, and CUDA itself


@dataclass(frozen=True)
class EncodedPhoto:
    """A photo as it was read: decoding it is the worker's work."""

    name: str
    data: bytes


@dataclass(frozen=True)
class ActivateFiles:
    """All that decides what becomes of a photo; the network is the one that the codebook names."""

    codebook: Codebook
    recipe: Recipe
    format: str | None
    compiled: bool = False
    device: str | None = None
    """Of the network; a GPU if there is one."""
    graphics: bool = False
    """Whether graphics of few colors are activated too."""

    def __call__(self, items: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Each item with what came of its file, or of its photo; what stands in the place of one is passed on."""
        extractor = cached_extractor(self.codebook.extractor, self.device, compiled=self.compiled)
        activate_batch = partial(
            activate,
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
            for pair in run_batch(batch, activate_batch)
        ]


def use_processes(photos: int, device: torch.device) -> bool:
    """Whether there is so much to do that processes, which take half a minute to begin, are faster in the end."""
    return device.type == "cuda" and photos >= MIN_ITEMS_FOR_PROCESSES


def should_compile(photos: int, recipe: Recipe) -> bool:
    """Whether the half minute that compiling takes is won back."""
    return photos * recipe.steps * recipe.eot_samples >= _MIN_PASSES_TO_COMPILE


def map_in_workers(
    items: Iterable[tuple[Item, EncodedPhoto | Other]], work: ActivateFiles
) -> Iterator[list[tuple[Item, Activation | PhotoError | Other]]]:
    """What came of the items, some at a time."""
    yield from process_map(work, _chunks(items), modules=_PRELOADED_MODULES, processes=_max_processes())


def _max_processes() -> int:
    """One per core, as long as the GPU has memory for a network and a batch of each."""
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
    """The network that a worker holds for as long as it lives."""
    extractor = extractors.load(name, device)
    return extractor.compiled() if compiled and isinstance(extractor, NetworkExtractor) else extractor


def _decode(file: EncodedPhoto) -> Photo | PhotoError:
    try:
        return Photo.decode(file.data, file.name)
    except PhotoError as error:
        return error

"""Very many photos for one GPU: processes that each read, move and write some, as threads would wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import torch

from homing import extractors
from homing._parallel import MANY, cores, in_processes
from homing.activation.batch import activate
from homing.activation.pipeline import batches, moved, size_for
from homing.activation.recipe import Recipe
from homing.activation.release import Activation
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, NetworkExtractor
from homing.photo import Photo

Item = TypeVar("Item")
Other = TypeVar("Other")

_TOGETHER = 64  # photos that travel together, and are moved together
_BYTES = 16 * 2**20  # of their files
_PASSES = 500_000  # of the network
_MODULES = (__name__, "homing.extractors.timm_models")  # the latter takes longest of all
_GPU_MEMORY = 8 * 2**30  # that a process may take: 256 images in the loop, a batch of photos, and CUDA itself


@dataclass(frozen=True)
class File:
    """A photo as it was read: decoding it is the worker's work."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Work:
    """All that decides what becomes of a photo; the network is the one that the codebook names."""

    codebook: Codebook
    recipe: Recipe
    format: str | None
    compiled: bool = False
    device: str | None = None
    """Of the network; a GPU if there is one."""

    def __call__(self, items: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Each item with what came of its file, or of its photo; what stands in the place of one is passed on."""
        extractor = network(self.codebook.extractor, self.device, compiled=self.compiled)
        move = partial(
            activate,
            extractor=extractor,
            codebook=self.codebook,
            recipe=self.recipe,
            format=self.format,
        )
        decoded: Iterable[tuple[Any, Any]] = (
            (item, _decoded(file) if isinstance(file, File) else file) for item, file in items
        )
        return [pair for batch in batches(decoded, size_for(extractor.device)) for pair in moved(batch, move)]


def pays_off(photos: int, device: torch.device) -> bool:
    """Whether there is so much to do that processes, which take half a minute to begin, are faster in the end."""
    return device.type == "cuda" and photos >= MANY


def worth_compiling(photos: int, recipe: Recipe) -> bool:
    """Whether the half minute that compiling takes is won back."""
    return photos * recipe.steps * recipe.views >= _PASSES


def in_workers(
    items: Iterable[tuple[Item, File | Other]], work: Work
) -> Iterator[list[tuple[Item, Activation | PhotoError | Other]]]:
    """What came of the items, some at a time."""
    yield from in_processes(work, _some_at_a_time(items), modules=_MODULES, processes=_as_many_as_fit())


def _as_many_as_fit() -> int:
    """One per core, as long as the GPU has memory for a network and a batch of each."""
    if not torch.cuda.is_available():
        return cores()
    free, _ = torch.cuda.mem_get_info()
    return max(1, min(cores(), free // _GPU_MEMORY))


def _some_at_a_time(items: Iterable[tuple[Item, File | Other]]) -> Iterator[list[tuple[Item, File | Other]]]:
    some: list[tuple[Item, File | Other]] = []
    size = 0
    for item, file in items:
        some.append((item, file))
        size += len(file.data) if isinstance(file, File) else 0
        if len(some) == _TOGETHER or size > _BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


@lru_cache(maxsize=1)
def network(name: str, device: str | None = None, *, compiled: bool = False) -> Extractor:
    """The network that a worker holds for as long as it lives."""
    extractor = extractors.load(name, device)
    return extractor.compiled() if compiled and isinstance(extractor, NetworkExtractor) else extractor


def _decoded(file: File) -> Photo | PhotoError:
    try:
        return Photo.decode(file.data, file.name)
    except PhotoError as error:
        return error

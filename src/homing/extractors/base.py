"""What an extractor is, and how any network becomes one."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homing._machine import compiled, computes_in_half, default_device, keep_memory
from homing.extractors.folding import folded

_BATCHES = (1, 4, 16, 32, 64, 128, 256)  # what was too large for the memory is halved, and is then smaller


class Extractor(Protocol):
    """A differentiable network: (B, 3, H, W) sRGB in [0, 1] gives (B, dim) descriptors of unit norm."""

    name: str
    dim: int
    size: int
    fingerprint: str
    device: torch.device

    def __call__(self, images: Tensor) -> Tensor:
        """Descriptors of a batch of any one size; gradients reach the pixels."""
        ...

    def resize(self, image: Tensor) -> Tensor:
        """Bring one (3, H, W) image to the network's own (3, size, size)."""
        ...


class NetworkExtractor:
    """Any nn.Module as an extractor: resize to a square, normalise the pixels, run, scale to unit norm."""

    def __init__(
        self,
        network: nn.Module,
        *,
        name: str,
        size: int,
        mean: tuple[float, float, float] = (0.485, 0.456, 0.406),
        std: tuple[float, float, float] = (0.229, 0.224, 0.225),
        device: torch.device | str | None = None,
    ) -> None:
        self.name, self.size = name, size
        self.device = torch.device(device) if device else default_device()
        if self.device.type == "cpu":
            keep_memory()
        for parameter in network.parameters():  # one by one: TorchScript cannot be asked as a whole
            parameter.requires_grad_(False)
        self._mean = torch.tensor(mean, device=self.device)[:, None, None]
        self._std = torch.tensor(std, device=self.device)[:, None, None]
        example = torch.linspace(-1, 1, 3 * size * size).view(1, 3, size, size)
        lighter = folded(network.eval().cpu(), example)  # a GPU's rounding would hide what folding changes
        # In the order of memory that convolutions work in, on GPUs and CPUs alike.
        self._given, self._network = (
            each.to(self.device).to(memory_format=torch.channels_last) for each in (network, lighter)
        )
        # CPUs that could compute in half precision were not faster by it.
        self._half = self.device.type == "cuda" and computes_in_half(self.device)
        self._looped: Callable[[Tensor], Tensor] = self.__call__
        with torch.no_grad():
            self.dim = int(self(example.to(self.device)).shape[1])
        self.fingerprint = _fingerprint(network.state_dict(), f"{size} {tuple(mean)} {tuple(std)}")

    def __call__(self, images: Tensor) -> Tensor:
        """Descriptors of unit norm, (B, dim), of (B, 3, H, W) images."""
        return F.normalize(self.features(images), dim=1)

    def features(self, images: Tensor) -> Tensor:
        """What the network gives before it is scaled to unit norm."""
        if images.shape[-2:] != (self.size, self.size):
            images = _resize(images, self.size)
        features: Tensor = self._network((images - self._mean) / self._std)
        return features.flatten(1).float()

    def resize(self, image: Tensor) -> Tensor:
        """One (3, H, W) image as the (3, size, size) square the network sees."""
        return _resize(image[None], self.size)[0]

    def as_given(self) -> NetworkExtractor:
        """The same with the network layer by layer as its authors wrote it: what a benchmark compares with."""
        plain = copy.copy(self)
        plain._network, plain._half, plain._looped = self._given, False, plain.__call__
        return plain

    def compiled(self) -> NetworkExtractor:
        """The same with what loops run compiled, on a GPU: half a minute for each size of batch."""
        quick = copy.copy(self)
        quick._looped = compiled(quick.__call__, self.device, dynamic=False)
        return quick

    def in_loop(self, images: Tensor) -> Tensor:
        """Descriptors for a gradient: in half precision where the device is made for it, compiled if that was asked."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
            return self._looped(images)


def in_loop(extractor: Extractor, images: Tensor) -> Tensor:
    """Descriptors, as `extractor` gives them, for a gradient: as fast as it can, and exact enough for a direction."""
    quick: Callable[[Tensor], Tensor] = getattr(extractor, "in_loop", extractor)
    return quick(images)


def describe(extractor: Extractor, views: Sequence[Tensor]) -> Tensor:
    """Descriptors of photos as they are, (B, dim) on the CPU; the (3, H, W) views may differ in size."""
    with torch.inference_mode():
        squares = torch.stack([extractor.resize(view) for view in views])
        some_at_once = torch.split(squares, images_at_once(extractor))
        return torch.cat([_described(extractor, some.to(extractor.device)).cpu() for some in some_at_once])


def _described(extractor: Extractor, squares: Tensor) -> Tensor:
    return extractor(squares[places_in_batch(len(squares), extractor.device)])[: len(squares)]


def images_at_once(extractor: Extractor) -> int:
    """A good batch: large on a GPU; on a CPU to get the memory for a large one costs more than the network itself."""
    return 256 if extractor.device.type == "cuda" else 16


def places_in_batch(count: int, device: torch.device) -> Tensor:
    """The places of so many images in the batch that they are computed in: the last one fills what is left of it."""
    return torch.arange(_batch_for(count, device), device=device).clamp_(max=count - 1)


def _batch_for(count: int, device: torch.device) -> int:
    """A GPU takes seconds to get ready for a size of batch that it has not met, so it meets few."""
    return next((size for size in _BATCHES if size >= count), count) if device.type == "cuda" else count


def _resize(images: Tensor, size: int) -> Tensor:
    return F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)


def _fingerprint(state: Mapping[str, Tensor], preprocessing: str) -> str:
    """A hash of the weights and of what is done to the pixels before them; where the files lie does not matter."""
    digest = hashlib.sha256(preprocessing.encode())
    for key in sorted(state):
        digest.update(key.encode())
        digest.update(state[key].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()

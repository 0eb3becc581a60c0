"""What an extractor is, and how any network becomes one."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homing._io.device import compile_on_gpu, default_device, supports_bfloat16, tune_malloc
from homing.extractors.batch_norm_folding import fold_batch_norms

_BATCH_SIZES = (1, 4, 16, 32, 64, 128, 256)  # what was too large for the memory is halved, and is then smaller


@runtime_checkable
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
    """Any nn.Module as an extractor: resize to a square, normalize the pixels, run, scale to unit norm."""

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
            tune_malloc()
        for parameter in network.parameters():  # one by one: TorchScript cannot be asked as a whole
            parameter.requires_grad_(False)
        self._mean = torch.tensor(mean, device=self.device)[:, None, None]
        self._std = torch.tensor(std, device=self.device)[:, None, None]
        example = torch.linspace(-1, 1, 3 * size * size).view(1, 3, size, size)
        folded = fold_batch_norms(network.eval().cpu(), example)  # a GPU's rounding would hide what folding changes
        # In the order of memory that convolutions work in, on GPUs and CPUs alike.
        self._unfolded, self._network = (
            each.to(self.device).to(memory_format=torch.channels_last) for each in (network, folded)
        )
        # CPUs that could compute in half precision were not faster by it.
        self._half = self.device.type == "cuda" and supports_bfloat16(self.device)
        self._fast: Callable[[Tensor], Tensor] = self.__call__
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

    def unfolded(self) -> NetworkExtractor:
        """The same with the network layer by layer as its authors wrote it: what a benchmark compares with."""
        plain = copy.copy(self)
        plain._network, plain._half, plain._fast = self._unfolded, False, plain.__call__
        return plain

    def compiled(self) -> NetworkExtractor:
        """The same with what loops run compiled, on a GPU: half a minute for each size of batch."""
        fast = copy.copy(self)
        fast._fast = compile_on_gpu(fast.__call__, self.device, dynamic=False)
        return fast

    def forward_fast(self, images: Tensor) -> Tensor:
        """Descriptors for a gradient: in half precision where the device is made for it, compiled if that was asked."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
            return self._fast(images)


def forward_fast(extractor: Extractor, images: Tensor) -> Tensor:
    """Descriptors, as `extractor` gives them, for a gradient: as fast as it can, and exact enough for a direction."""
    fast: Callable[[Tensor], Tensor] = getattr(extractor, "forward_fast", extractor)
    return fast(images)


def describe(extractor: Extractor, images: Sequence[Tensor]) -> Tensor:
    """Descriptors of photos as they are, (B, dim) on the CPU; the (3, H, W) images may differ in size."""
    with torch.inference_mode():
        inputs = torch.stack([extractor.resize(image) for image in images])
        batches = torch.split(inputs, default_batch_size(extractor))
        return torch.cat([_describe_batch(extractor, batch.to(extractor.device)).cpu() for batch in batches])


def _describe_batch(extractor: Extractor, inputs: Tensor) -> Tensor:
    return extractor(inputs[batch_indices(len(inputs), extractor.device)])[: len(inputs)]


def default_batch_size(extractor: Extractor) -> int:
    """A good batch: large on a GPU; on a CPU to get the memory for a large one costs more than the network itself."""
    return 256 if extractor.device.type == "cuda" else 16


def batch_indices(count: int, device: torch.device) -> Tensor:
    """The indices of so many images in the batch that they are computed in: the last one fills what is left of it."""
    return torch.arange(_padded_batch_size(count, device), device=device).clamp_(max=count - 1)


def _padded_batch_size(count: int, device: torch.device) -> int:
    """A GPU takes seconds to get ready for a size of batch that it has not met, so it meets few."""
    return next((size for size in _BATCH_SIZES if size >= count), count) if device.type == "cuda" else count


def _resize(images: Tensor, size: int) -> Tensor:
    return F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)


def _fingerprint(state: Mapping[str, Tensor], preprocessing: str) -> str:
    """A hash of the weights and of what is done to the pixels before them; where the files lie does not matter."""
    digest = hashlib.sha256(preprocessing.encode())
    for key in sorted(state):
        digest.update(key.encode())
        digest.update(state[key].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()

"""The interface of extractors, and an extractor for any PyTorch network."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from homing._tensors import compile_on_gpu, default_device, supports_bfloat16, tune_malloc

Color = tuple[float, float, float]
IMAGENET_MEAN: Color = (0.485, 0.456, 0.406)
IMAGENET_STD: Color = (0.229, 0.224, 0.225)
_BATCH_SIZES = (1, 4, 16, 32, 64, 128, 256)  # powers of two: a batch that runs out of memory is halved
_FOLDING_ERROR = 1e-4  # relative error of the output that is accepted when batch norms are folded


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

    def resize(self, image: Tensor) -> Tensor:
        """Resize one (3, H, W) image to the network's input (3, size, size)."""


class NetworkExtractor:
    """Any nn.Module as an extractor: resize to a square, normalize the pixels, run, scale to unit norm."""

    def __init__(
        self,
        network: nn.Module,
        *,
        name: str,
        size: int,
        mean: Color = IMAGENET_MEAN,
        std: Color = IMAGENET_STD,
        device: torch.device | str | None = None,
    ) -> None:
        self.name, self.size = name, size
        self.device = torch.device(device) if device else default_device()
        if self.device.type == "cpu":
            tune_malloc()
        for parameter in network.parameters():  # TorchScript modules have no requires_grad_
            parameter.requires_grad_(False)
        self._mean = torch.tensor(mean, device=self.device)[:, None, None]
        self._std = torch.tensor(std, device=self.device)[:, None, None]
        example = torch.linspace(-1, 1, 3 * size * size).view(1, 3, size, size)
        folded = fold_batch_norms(network.eval().cpu(), example)  # on a GPU, rounding would hide the effect of folding
        # channels_last is the fastest memory format for convolutions on GPUs and CPUs.
        self._unfolded, self._network = (
            each.to(self.device).to(memory_format=torch.channels_last) for each in (network, folded)
        )
        # Half precision is not faster on CPUs that support it.
        self._half = self.device.type == "cuda" and supports_bfloat16(self.device)
        self._fast: Callable[[Tensor], Tensor] = self.__call__
        with torch.no_grad():
            self.dim = int(self(example.to(self.device)).shape[1])
        self.fingerprint = _fingerprint(network.state_dict(), f"{size} {tuple(mean)} {tuple(std)}")

    def __call__(self, images: Tensor) -> Tensor:
        """Descriptors of unit norm, (B, dim), of (B, 3, H, W) images."""
        return F.normalize(self.features(images), dim=1)

    def features(self, images: Tensor) -> Tensor:
        """The output of the network, before scaling to unit norm."""
        if images.shape[-2:] != (self.size, self.size):
            images = _resize(images, self.size)
        features: Tensor = self._network((images - self._mean) / self._std)
        return features.flatten(1).float()

    def resize(self, image: Tensor) -> Tensor:
        """Resize one (3, H, W) image to the network's input (3, size, size)."""
        return _resize(image[None], self.size)[0]

    def unfolded(self) -> NetworkExtractor:
        """A copy without folded batch norms, for comparisons in benchmarks."""
        plain = copy.copy(self)
        plain._network, plain._half, plain._fast = self._unfolded, False, plain.__call__
        return plain

    def compiled(self) -> NetworkExtractor:
        """A copy whose `forward_fast` is compiled on a GPU: half a minute for each batch size."""
        fast = copy.copy(self)
        fast._fast = compile_on_gpu(fast.__call__, self.device, dynamic=False)
        return fast

    def forward_fast(self, images: Tensor) -> Tensor:
        """Descriptors for gradients: in half precision if the device supports it, compiled after `compiled`."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
            return self._fast(images)


def forward_fast(extractor: Extractor, images: Tensor) -> Tensor:
    """Descriptors for gradients: `extractor.forward_fast` if there is one, else the extractor itself."""
    fast: Callable[[Tensor], Tensor] = getattr(extractor, "forward_fast", extractor)
    return fast(images)


def describe_images(extractor: Extractor, images: Sequence[Tensor]) -> Tensor:
    """Descriptors (B, dim), on the CPU, of (3, H, W) images, which may differ in size."""
    with torch.inference_mode():
        inputs = torch.stack([extractor.resize(image) for image in images])
        described = []
        for batch in torch.split(inputs, default_batch_size(extractor)):
            padded = batch.to(extractor.device)[batch_indices(len(batch), extractor.device)]
            described.append(extractor(padded)[: len(batch)].cpu())
        return torch.cat(described)


def default_batch_size(extractor: Extractor) -> int:
    """The default batch size: small on a CPU, where allocating the memory of a large batch is slow."""
    return 256 if extractor.device.type == "cuda" else 16


def batch_indices(count: int, device: torch.device) -> Tensor:
    """The indices of `count` images in their padded batch; the last image fills the padding."""
    return torch.arange(_padded_batch_size(count, device), device=device).clamp_(max=count - 1)


def _padded_batch_size(count: int, device: torch.device) -> int:
    """The batch size after padding: on a GPU one of a few sizes, as each new size takes seconds to plan."""
    return next((size for size in _BATCH_SIZES if size >= count), count) if device.type == "cuda" else count


def _resize(images: Tensor, size: int) -> Tensor:
    return F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)


def _fingerprint(state: Mapping[str, Tensor], preprocessing: str) -> str:
    """A hash of the weights and the preprocessing."""
    digest = hashlib.sha256(preprocessing.encode())
    for key in sorted(state):
        digest.update(key.encode())
        digest.update(state[key].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@torch.no_grad()
def fold_batch_norms(network: nn.Module, example: Tensor) -> nn.Module:
    """A copy with batch norms folded into convolutions; the network itself if nothing can be folded.

    The folded network makes fewer passes over memory. `example` (1, 3, S, S) is run through the network to see which
    norm follows which convolution.
    """
    if isinstance(network, torch.jit.ScriptModule) or not any(
        isinstance(each, nn.Conv2d) for each in network.modules()
    ):
        return network
    from timm.layers import BatchNormAct2d  # imports as slowly as PyTorch itself

    pairs = _norms_after_convolutions(network, example, (nn.BatchNorm2d, BatchNormAct2d))
    if not pairs:
        return network
    folded = copy.deepcopy(network)
    for convolution, norm in pairs:
        writer: Any = folded.get_submodule(convolution)
        reader: Any = folded.get_submodule(norm)
        folded.set_submodule(convolution, fuse_conv_bn_eval(writer, reader))
        folded.set_submodule(norm, reader.act if isinstance(reader, BatchNormAct2d) else nn.Identity())
    before, after = network(example), folded(example)
    same = (before - after).norm() <= _FOLDING_ERROR * before.norm()
    return folded if same else network  # the output of a convolution is also used elsewhere


def _norms_after_convolutions(
    network: nn.Module, example: Tensor, norms: tuple[type[nn.Module], ...]
) -> list[tuple[str, str]]:
    """The names of convolutions and of the norms that follow them; each is used once."""
    written: dict[int, str] = {}
    pairs: list[tuple[str, str]] = []
    calls = Counter[str]()
    alive: list[Tensor] = []  # keeps ids of tensors unique during the run

    def on_call(name: str, module: nn.Module, inputs: tuple[Tensor, ...], result: Tensor) -> None:
        calls[name] += 1
        if isinstance(module, nn.Conv2d):
            written[id(result)] = name
            alive.append(result)
        elif id(inputs[0]) in written:
            pairs.append((written[id(inputs[0])], name))

    with ExitStack() as hooks:
        for name, module in network.named_modules():
            if isinstance(module, nn.Conv2d) or type(module) in norms:  # subclasses may do more than normalize
                hooks.enter_context(module.register_forward_hook(partial(on_call, name)))
        network(example)
    return [pair for pair in pairs if all(calls[name] == 1 for name in pair)]

"""TorchScript files, such as published copy-detection networks."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import torch

from homing.errors import HomingError
from homing.extractors.base import Extractor, NetworkExtractor

SIZE = 288  # input size of the paper's networks


def torchscript(path: str, device: torch.device | str | None = None) -> Extractor:
    """Any TorchScript file; input of 288 px with ImageNet normalization."""
    path = str(Path(path).absolute())  # codebooks store the name, so it must be valid in any working directory
    if not Path(path).is_file():
        raise HomingError(f"no such TorchScript file: {path}")
    try:
        with warnings.catch_warnings():
            # TorchScript is deprecated, but published networks use it.
            warnings.filterwarnings("ignore", "`torch.jit")
            network = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise HomingError(
            f"{path} is not a TorchScript file; load published weights with: homing extractors fetch NAME --file {path}"
        ) from error
    try:
        extractor = NetworkExtractor(network, name=path, size=SIZE, device=device)
        _try(extractor)
    except Exception as error:  # a script can raise anything
        reason = str(error).strip().split("\n")[-1]
        raise HomingError(
            f"{path} does not give every photo of {SIZE} px a descriptor and a gradient: {reason}"
        ) from error
    return extractor


@torch.enable_grad()
def _try(extractor: Extractor) -> None:
    """Raise an error if two photos do not give two descriptors, or no gradient reaches them."""
    shape = (2, 3, extractor.size, extractor.size)
    images = torch.linspace(0, 1, math.prod(shape), device=extractor.device).view(shape).requires_grad_()
    descriptors = extractor(images)
    if len(descriptors) != 2:
        raise ValueError(f"two photos gave {len(descriptors)}")
    if not descriptors.isfinite().all():
        raise ValueError("its descriptors are not numbers")
    descriptors.sum().backward()  # type: ignore[no-untyped-call]
    if images.grad is None or not images.grad.any():
        raise ValueError("its gradient does not reach the pixels")

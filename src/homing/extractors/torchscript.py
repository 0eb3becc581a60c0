"""Any TorchScript file, such as the networks copy-detection authors publish."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import torch

from homing.errors import HomingError
from homing.extractors.base import Extractor, NetworkExtractor

SIZE = 288  # what the paper's networks see


def torchscript(path: str, device: torch.device | str | None = None) -> Extractor:
    """Any TorchScript file; seen at 288 px with ImageNet normalization."""
    path = str(Path(path).absolute())  # a codebook names it, and must find it from any folder
    if not Path(path).is_file():
        raise HomingError(f"no such TorchScript file: {path}")
    try:
        with warnings.catch_warnings():
            # PyTorch moves to torch.export, but this is the format in which the authors publish.
            warnings.filterwarnings("ignore", "`torch.jit")
            network = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise HomingError(
            f"{path} is not a TorchScript file; weights that authors publish are taken with: "
            f"homing extractors fetch NAME --file {path}"
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
        raise ValueError("its descriptors are no numbers")
    descriptors.sum().backward()  # type: ignore[no-untyped-call]
    if images.grad is None or not images.grad.any():
        raise ValueError("its gradient does not reach the pixels")

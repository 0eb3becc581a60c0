"""Any TorchScript file, such as the networks copy-detection authors publish."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from homing.errors import HomingError
from homing.extractors.base import Extractor, NetworkExtractor

SIZE = 288  # what the paper's networks see


def torchscript(path: str, device: torch.device | str | None = None) -> Extractor:
    """Any TorchScript file; seen at 288 px with ImageNet normalisation."""
    path = str(Path(path).absolute())  # a codebook names it, and must find it from any folder
    if not Path(path).is_file():
        raise HomingError(f"no such TorchScript file: {path}")
    try:
        with warnings.catch_warnings():
            # PyTorch moves to torch.export, but this is the format in which the authors publish.
            warnings.filterwarnings("ignore", "`torch.jit")
            network = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise HomingError(f"{path} is not a TorchScript file: {str(error).strip().split(chr(10))[0]}") from error
    return NetworkExtractor(network, name=path, size=SIZE, device=device)

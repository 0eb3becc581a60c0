"""LPIPS, a learned distance between two photos (Zhang et al., 2018). It needs the extra `lpips`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor

from homing._extras import load_extra
from homing._io.device import default_device
from homing.errors import HomingError

Distance = Callable[[Tensor, Tensor], float]


def load_lpips() -> Distance:
    """Load LPIPS with AlexNet: a function of two (3, H, W) images of one size, 0 if they are equal."""
    lpips = load_extra("lpips", extra="lpips")
    from torchvision.models import AlexNet_Weights

    address = AlexNet_Weights.DEFAULT.url
    file = Path(torch.hub.get_dir(), "checkpoints", Path(address).name)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="torchvision")  # lpips uses a deprecated argument
            network = lpips.LPIPS(net="alex", verbose=False).to(default_device())
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise HomingError(
            f"LPIPS needs AlexNet's weights, which could not be downloaded: {reason}; "
            f"download {address} on a connected machine and put it at {file}"
        ) from error
    except (RuntimeError, EOFError, UnpicklingError) as error:
        raise HomingError(f"AlexNet's weights, which LPIPS needs, are damaged; remove {file}") from error

    def distance(first: Tensor, second: Tensor) -> float:
        with torch.inference_mode():
            pair = (image[None].to(default_device()) for image in (first, second))
            return float(network(*pair, normalize=True))

    return distance

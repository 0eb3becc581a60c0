"""Photos scaled to small squares, so that many fit in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch.nn.functional as F

from homing.errors import PhotoError, ran_out_of_memory
from homing.photo.photo import Photo, read_file


@dataclass(frozen=True)
class Square:
    """Pixels of a photo as (3, side, side) bytes, whatever its aspect ratio, and the hash of the file."""

    pixels: np.ndarray
    sha256: bytes


def read_square(path: Path, side: int) -> Square | PhotoError:
    """Read a photo as a square; the error if it cannot be read."""
    try:
        data = read_file(path)
        pixels = Photo.decode(data, str(path)).pixels()
        square = F.interpolate(pixels[None], (side, side), mode="bilinear", antialias=True, align_corners=False)[0]
        return Square((square * 255).round().clamp(0, 255).byte().numpy(), hashlib.sha256(data).digest())
    except PhotoError as error:
        return error
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return PhotoError(f"{path}: too large for the available memory")

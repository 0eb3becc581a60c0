"""Photos scaled to small squares, to keep many of them in memory."""

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
    """(3, side, side) bytes of a photo's view, whatever its ratio, and the hash of the file."""

    pixels: np.ndarray
    sha256: bytes


def read_square(path: Path, side: int) -> Square | PhotoError:
    """The photo of a file as a square, or why there is none."""
    try:
        data = read_file(path)
        view = Photo.decode(data, str(path)).pixels()
        square = F.interpolate(view[None], (side, side), mode="bilinear", antialias=True, align_corners=False)[0]
        return Square((square * 255).round().clamp(0, 255).byte().numpy(), hashlib.sha256(data).digest())
    except PhotoError as error:
        return error
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return PhotoError(f"{path}: too large for the memory there is")

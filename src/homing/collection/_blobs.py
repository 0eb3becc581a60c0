"""Convert arrays to the bytes that a database stores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch


def to_float16(rows: np.ndarray) -> np.ndarray:
    """Convert an array to fp16."""
    half: np.ndarray = torch.tensor(rows, dtype=torch.half).numpy()  # twice as fast as NumPy
    return half


def row_bytes(rows: np.ndarray) -> Iterator[bytes]:
    """Yield the bytes of each row of an array (N, …)."""
    # Slicing one bytes object is faster than making an array for each of a million rows.
    whole, size = rows.tobytes(), rows.shape[1] * rows.itemsize
    return (whole[start : start + size] for start in range(0, len(whole), size))

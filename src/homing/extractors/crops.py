"""Descriptors of photos and of random crops of them; each photo is decoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._io.parallel import parallel_map
from homing._tensors import supports_bfloat16
from homing.errors import PhotoError
from homing.extractors.base import Extractor, default_batch_size
from homing.photo import read_square

SQUARE_SIDE = 256  # photos are resized to this square before cropping, or to the network's size if that is larger
MIN_CROP_SIDE = 0.5  # smallest side of a crop, as a share of the photo's
SEED = 0
PHOTOS_PER_BATCH = 64

Report = Callable[[PhotoError | None], None]


def describe_crops(
    extractor: Extractor, paths: Sequence[Path], count: int, report: Report, *, start: int = 0
) -> Iterator[np.ndarray]:
    """Batches of (B, dim) descriptors, float32: of every photo whole and of random crops of it.

    There are `count` descriptors if all photos can be read; photos that cannot be read are not replaced. If `count` is
    smaller than the number of photos, the first photos give one each. `report` is called once per photo, with its error
    or None, before the batch of the photo is yielded. The first `start` photos are skipped.
    """
    each, more = divmod(count, max(len(paths), 1))
    readable = _read(paths[:count], start, square_side(extractor), report)
    while batch := list(islice(readable, PHOTOS_PER_BATCH)):
        shares = [each + (index < more) for index, _ in batch]
        squares = torch.from_numpy(np.stack([square for _, square in batch]))
        windows = [crop_windows(index, share) for (index, _), share in zip(batch, shares, strict=True)]
        owners = torch.arange(len(batch)).repeat_interleave(torch.tensor(shares))
        parts = describe_windows(extractor, squares, owners, torch.from_numpy(np.concatenate(windows)))
        yield np.concatenate(list(parts))


def square_side(extractor: Extractor) -> int:
    """Side of the squares that crops are cut from, in pixels; at least the network's input size."""
    return max(SQUARE_SIDE, extractor.size)


def describe_windows(extractor: Extractor, squares: Tensor, owners: Tensor, windows: Tensor) -> Iterator[np.ndarray]:
    """Batches of descriptors of (N, 3) windows, as `crop_windows` gives them, of squares (P, 3, S, S).

    `owners` (N,) says which square each window is cut from.
    """
    squares = squares.to(extractor.device)
    size = default_batch_size(extractor)
    for batch, batch_owners in zip(torch.split(windows, size), torch.split(owners, size), strict=True):
        yield _describe(extractor, squares[batch_owners.to(extractor.device)], batch.to(extractor.device))


def crop_windows(index: int, count: int) -> np.ndarray:
    """The windows (count, 3) cut from the photo at this index in the list: side and center x, y.

    A side is a share of the photo's sides, so that the aspect ratio is kept; centers are in [-1, 1]. The first window
    is the whole photo. A larger count does not change the first windows.
    """
    random = np.random.default_rng([SEED, index]).random((count - 1, 3), dtype=np.float32)
    sides = MIN_CROP_SIDE + (1 - MIN_CROP_SIDE) * random[:, :1]
    centers = (1 - sides) * (2 * random[:, 1:] - 1)
    whole = np.array([[1, 0, 0]], dtype=np.float32)
    return np.concatenate([whole, np.concatenate([sides, centers], axis=1)])


def _read(paths: Sequence[Path], start: int, side: int, report: Report) -> Iterator[tuple[int, np.ndarray]]:
    """The photos from `start` on that can be read as squares, each with its index in the list."""
    for index, square in enumerate(parallel_map(partial(read_square, side=side), list(paths[start:])), start):
        if isinstance(square, PhotoError):
            report(square)
        else:
            report(None)
            yield index, square.pixels


def _describe(extractor: Extractor, squares: Tensor, windows: Tensor) -> np.ndarray:
    """Descriptors (B, dim) of one (B, 3) window of each of (B, 3, S, S) bytes."""
    sides, centers = windows[:, 0], windows[:, 1:]
    affine = torch.cat([torch.diag_embed(sides[:, None].expand(-1, 2)), centers[:, :, None]], dim=2)
    with torch.inference_mode():
        grid = F.affine_grid(affine, [len(squares), 3, extractor.size, extractor.size], align_corners=False)
        crops = F.grid_sample(squares / 255, grid, mode="bilinear", padding_mode="border", align_corners=False)
        # Twice as fast; the cosine to the exact descriptor is at least 0.997, which is enough for training sets.
        half = supports_bfloat16(extractor.device)
        with torch.autocast(extractor.device.type, torch.bfloat16, enabled=half):
            return extractor(crops).float().cpu().numpy()

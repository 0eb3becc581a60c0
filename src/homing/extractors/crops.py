"""Descriptors of photos and of random crops of them: many more than there are photos, each decoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._parallel import map_many
from homing.errors import PhotoError
from homing.extractors.base import Extractor
from homing.photo import Photo

SQUARE = 256  # pixels a side: what a photo is brought to, whatever the network, before crops are cut from it
SMALLEST = 0.5  # the side of a crop, at least, as a share of the photo's
SEED = 0
PHOTOS_AT_ONCE = 64

Report = Callable[[PhotoError | None], None]


def describe_crops(extractor: Extractor, paths: Sequence[Path], count: int, report: Report) -> Iterator[np.ndarray]:
    """Batches of (B, dim) descriptors, float32, `count` in all: of every photo whole and of random crops of it.

    Crops are spread evenly over the photos that can be read; of fewer descriptors than photos, the first photos give
    one each. `report` is called once per photo, with its error where it cannot be read.
    """
    shares = _shares(map_many(_square, list(paths)), len(paths), count, report)
    while batch := list(islice(shares, PHOTOS_AT_ONCE)):
        squares = torch.from_numpy(np.stack([square for _, square, _ in batch]))
        windows = torch.from_numpy(np.concatenate([crop_windows(place, share) for place, _, share in batch]))
        owners = torch.arange(len(batch)).repeat_interleave(torch.tensor([share for _, _, share in batch]))
        yield from describe_windows(extractor, squares, owners, windows)


def describe_windows(extractor: Extractor, squares: Tensor, owners: Tensor, windows: Tensor) -> Iterator[np.ndarray]:
    """Batches of descriptors of (N, 3) windows, as `crop_windows` gives them, of the squares (P, 3, S, S) they own."""
    squares = squares.to(extractor.device)
    size = images_at_once(extractor)
    for some, whose in zip(torch.split(windows, size), torch.split(owners, size), strict=True):
        yield _describe(extractor, squares[whose.to(extractor.device)], some.to(extractor.device))


def images_at_once(extractor: Extractor) -> int:
    """A good batch: large on a GPU; on a CPU to get the memory for a large one costs more than the network itself."""
    return 256 if extractor.device.type == "cuda" else 16


def crop_windows(place: int, count: int) -> np.ndarray:
    """The windows (count, 3) cut from the photo at this place in the list: side and centre x, y.

    A side is a share of the photo's, so that its ratio is kept; centres lie in [-1, 1]. The first window is the whole
    photo; more of them never change those before.
    """
    drawn = np.random.default_rng([SEED, place]).random((count - 1, 3), dtype=np.float32)
    sides = SMALLEST + (1 - SMALLEST) * drawn[:, :1]
    centres = (1 - sides) * (2 * drawn[:, 1:] - 1)
    whole = np.array([[1, 0, 0]], dtype=np.float32)
    return np.concatenate([whole, np.concatenate([sides, centres], axis=1)])


def _square(path: Path) -> np.ndarray | PhotoError:
    try:
        view = Photo.load(path).view()
    except PhotoError as error:
        return error
    square = F.interpolate(view[None], (SQUARE, SQUARE), mode="bilinear", antialias=True, align_corners=False)[0]
    return (square * 255).round().clamp(0, 255).byte().numpy()


def _shares(
    squares: Iterable[np.ndarray | PhotoError], photos: int, count: int, report: Report
) -> Iterator[tuple[int, np.ndarray, int]]:
    """Each photo that can be read, with its place in the list and the number of descriptors it gives."""
    left = count
    # One photo waits for the next that can be read: the last of them gives all that is still missing.
    waiting: tuple[int, np.ndarray] | None = None
    for place, square in enumerate(squares):
        if isinstance(square, PhotoError):
            report(square)
            continue
        if waiting is not None:
            share = -(-left // (photos - place + 1))
            report(None)
            yield *waiting, share
            left -= share
            if not left:
                return
        waiting = place, square
    if waiting is not None:
        report(None)
        yield *waiting, left


def _describe(extractor: Extractor, squares: Tensor, windows: Tensor) -> np.ndarray:
    """Descriptors (B, dim) of one (B, 3) window of each of (B, 3, S, S) bytes."""
    sides, centres = windows[:, 0], windows[:, 1:]
    turns = torch.cat([torch.diag_embed(sides[:, None].expand(-1, 2)), centres[:, :, None]], dim=2)
    with torch.inference_mode():
        grid = F.affine_grid(turns, [len(squares), 3, extractor.size, extractor.size], align_corners=False)
        crops = F.grid_sample(squares / 255, grid, mode="bilinear", padding_mode="border", align_corners=False)
        # Half precision is made for GPUs; on a CPU it is slower.
        with torch.autocast(extractor.device.type, torch.bfloat16, enabled=extractor.device.type == "cuda"):
            return extractor(crops).float().cpu().numpy()

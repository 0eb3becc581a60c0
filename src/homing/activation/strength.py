"""Write each photo at the strength whose file has the target PSNR: predict, write, measure, and narrow, in rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from homing._io.parallel import thread_map
from homing.activation.jpeg_psnr import JpegPsnr, predict_psnr
from homing.errors import PhotoError
from homing.perception.quality import psnr_batch, rms
from homing.photo import Photo, apply_changes

_TOLERANCE = 0.1  # dB: how far a file may lie above the target PSNR, and a prediction from the middle of that range
_MAX_ROUNDS = 8
_MAX_STRENGTH = 2.0  # as a multiple of the change that the loop gave
_ERROR_EXPONENT = 1.65  # the squared error of JPEG files grows with strength to this power; 2 without rounding
_MIN_STRENGTH = 0.25  # of that change: a target that is missed here is never met


@dataclass(frozen=True, eq=False)
class ChangedPhoto:
    """A photo and its change, to be written in a format, by default the photo's own.

    Image and change (3, H, W) are on one device, on which files are measured.
    """

    photo: Photo
    image: Tensor
    change: Tensor
    change_rms: float
    """RMS of the change."""
    format: str | None = None

    @classmethod
    def batch(
        cls, photos: Sequence[Photo], images: Sequence[Tensor], changes: Sequence[Tensor], format: str | None = None
    ) -> list[ChangedPhoto]:
        """Photos with their images and changes; the device is synchronized once."""
        change_rms = torch.stack([rms(change) for change in changes]).tolist()
        return [cls(*each, format) for each in zip(photos, images, changes, change_rms, strict=True)]


class Candidate(NamedTuple):
    """One way to write a photo, measured on its bytes."""

    data: bytes
    decoded: Tensor
    """The image decoded from `data`."""
    strength: float
    finer: bool
    psnr: float


Attempt = tuple[ChangedPhoto, float, bool]
"""A photo, the strength of its change, and whether it is written finer, as in `Photo.encode`."""


class Point(NamedTuple):
    """A strength, and the PSNR that was predicted or measured for it."""

    strength: float
    psnr: float


def write_candidates(attempts: Sequence[Attempt], *, quick: bool = True) -> list[Candidate | PhotoError]:
    """Write photos with their changes scaled, decode the files again, and measure them.

    `quick` as in `Photo.encode`. A photo that cannot be written gives its error.
    """
    changes = (strength * photo.change for photo, strength, _ in attempts)
    changed = apply_changes([photo.photo for photo, _, _ in attempts], changes)

    def write(position: int) -> tuple[bytes, Tensor] | PhotoError:
        photo, _, finer = attempts[position]
        try:
            data = changed[position].encode(photo.format, finer, quick)
            return data, Photo.decode(data, photo.photo.name).pixels(photo.image.device)
        except PhotoError as error:
            return error

    files = thread_map(write, range(len(attempts)), threads=torch.get_num_threads())
    written = [(*each, file) for each, file in zip(attempts, files, strict=True) if not isinstance(file, PhotoError)]
    psnrs = iter(psnr_batch([photo.image for photo, *_ in written], [decoded for *_, (_, decoded) in written]))
    return [
        file if isinstance(file, PhotoError) else Candidate(*file, strength, finer, next(psnrs))
        for (_, strength, finer), file in zip(attempts, files, strict=True)
    ]


def write_at_psnr(
    photos: Sequence[ChangedPhoto], target_psnr: float | None, *, finer: bool = False
) -> list[Candidate | PhotoError]:
    """Write photos at the strength whose file has the target PSNR, or at strength 1 without a target.

    Where the target cannot be met, the file that comes closest.
    """
    if target_psnr is None:
        return write_candidates([(photo, 1.0, finer) for photo in photos])
    strengths = predict_strengths(photos, target_psnr, finer=finer)
    best: dict[int, Candidate] = {}
    errors: dict[int, PhotoError] = {}
    points: list[list[Point]] = [[] for _ in photos]
    open_photos = list(range(len(photos)))
    while open_photos:
        files = write_candidates([(photos[index], strengths[index], finer) for index in open_photos])
        still_open = []
        for index, file in zip(open_photos, files, strict=True):
            if isinstance(file, PhotoError):
                errors[index] = file
                continue
            points[index].append(Point(file.strength, file.psnr))
            # A file that meets the target is better than one that does not.
            best[index] = min(
                (best.get(index, file), file), key=lambda each: (each.psnr < target_psnr, abs(each.psnr - target_psnr))
            )
            found = 0 <= file.psnr - target_psnr <= _TOLERANCE or len(points[index]) == _MAX_ROUNDS
            strength = None if found else next_strength(points[index], target_psnr + _TOLERANCE / 2)
            if strength is not None:
                strengths[index] = strength
                still_open.append(index)
        open_photos = still_open
    return [errors.get(index) or best[index] for index in range(len(photos))]


def predict_strengths(photos: Sequence[ChangedPhoto], target_psnr: float, *, finer: bool = False) -> list[float]:
    """The strength to begin with: for JPEG that of a predicted PSNR, after which one file usually suffices."""
    strengths = [first_strength(each.change_rms, target_psnr) for each in photos]
    predictors = {
        index: JpegPsnr(each.photo, each.image, each.change, tables)
        for index, each in enumerate(photos)
        if each.change_rms and (tables := each.photo.jpeg_tables(each.format, finer))
    }
    points: list[list[Point]] = [[] for _ in photos]
    middle = target_psnr + _TOLERANCE / 2
    open_photos = list(predictors)
    while open_photos:
        psnrs = predict_psnr([predictors[index] for index in open_photos], [strengths[index] for index in open_photos])
        still_open = []
        for index, psnr in zip(open_photos, psnrs, strict=True):
            points[index].append(Point(strengths[index], psnr))
            # A prediction that is close enough is refined once more: that costs nothing.
            strength = next_strength(points[index], middle)
            close = abs(psnr - middle) <= _TOLERANCE or len(points[index]) == _MAX_ROUNDS
            if strength is not None:
                strengths[index] = strength
                still_open += [] if close or strength == points[index][-1].strength else [index]
        open_photos = still_open
    return strengths


def first_strength(change_rms: float, target_psnr: float) -> float:
    """The strength at which a change with this RMS has the target PSNR, without rounding."""
    return min(math.sqrt(_mse(target_psnr)) / change_rms, _MAX_STRENGTH) if change_rms else 1.0


def next_strength(points: Sequence[Point], target_psnr: float) -> float | None:
    """The strength to try next for the target PSNR; None if no other can be better."""
    # The nearest point on either side: several strengths may round to the same file.
    above = max((each for each in points if each.psnr >= target_psnr), key=lambda each: each.strength, default=None)
    below = min((each for each in points if each.psnr < target_psnr), key=lambda each: each.strength, default=None)
    if above is not None and below is not None:
        # Between two points the PSNR is about linear in the logarithm of the strength. Bisect if one was rounded
        # away entirely, or if the last three lie on one side.
        evenly = math.isfinite(above.psnr) and len({each.psnr < target_psnr for each in points[-3:]}) > 1
        share = (above.psnr - target_psnr) / (above.psnr - below.psnr) if evenly else 0.5
        return float(above.strength * (below.strength / above.strength) ** share)
    # Beyond the points, the squared error is about that of writing alone plus slope · strength².
    last = points[-1]
    error, squared = _mse(last.psnr), last.strength**2
    writing, exponent = 0.0, _ERROR_EXPONENT
    if len(points) > 1:
        other = points[-2]
        slope = (error - _mse(other.psnr)) / (squared - other.strength**2)
        writing, exponent = max(0.0, error - slope * squared), 2.0
    if writing >= _mse(target_psnr):
        # Changes of equal size round to a whole step or to none: try lower strengths before giving up.
        return last.strength / 2 if last.strength > _MIN_STRENGTH else None
    step = 4.0  # when the change was rounded away
    if error > writing:
        step = min(max(((_mse(target_psnr) - writing) / (error - writing)) ** (1 / exponent), 0.25), 4.0)
    strength = min(step * last.strength, _MAX_STRENGTH)
    return strength if strength != last.strength else None


def _mse(psnr: float) -> float:
    """The mean squared error of a PSNR in dB."""
    return float(10 ** (-psnr / 10))

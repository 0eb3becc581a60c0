"""Pixels as files store them: color profiles and their conversion to sRGB, bit depth, alpha, orientation."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image, ImageCms
from torch import Tensor

if TYPE_CHECKING:
    from homing.photo.photo import Photo

CMYK_CHANNELS = 4

Array = TypeVar("Array", np.ndarray, Tensor)

# By orientation, from 1 to 8: the axes to flip. For the last four, rows and columns are swapped after that.
_FLIPS: tuple[tuple[int, ...], ...] = ((), (1,), (0, 1), (0,), (), (0,), (0, 1), (1,))

_log = logging.getLogger("homing")


def upright(array: Array, orientation: int) -> Array:
    """Turn a stored (H, W, ...) array upright, as a viewer does, by its EXIF orientation."""
    flipped = _flip(array, _FLIPS[orientation - 1])
    return flipped.swapaxes(0, 1) if orientation > 4 else flipped


def stored(array: Array, orientation: int) -> Array:
    """Turn an upright (H, W, ...) array to the orientation in which the file stores it."""
    return _flip(array.swapaxes(0, 1) if orientation > 4 else array, _FLIPS[orientation - 1])


def _flip(array: Array, axes: tuple[int, ...]) -> Array:
    if not axes:
        return array  # a tensor would be copied
    return array.flip(axes) if isinstance(array, Tensor) else np.flip(array, axes)


def mode_of(channels: int) -> str:
    """Pillow's name for pixels of 1, 3 or 4 color channels."""
    return {1: "L", 3: "RGB", CMYK_CHANNELS: "CMYK"}[channels]


def to_8_bit(levels: np.ndarray) -> np.ndarray:
    """Round code values of 8 or 16 bits to 8 bits."""
    if levels.dtype == np.uint8:
        return levels
    return ((levels.astype(np.uint32) + 128) // 257).astype(np.uint8)


def straight(colors: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Divide (H, W, C) colors that were multiplied by their alpha (H, W, 1) by it."""
    white = np.iinfo(colors.dtype).max
    divided: np.ndarray = np.rint(colors * (white / np.maximum(alpha, 1))).clip(0, white).astype(colors.dtype)
    return divided


def planes(photo: Photo) -> np.ndarray:
    """(H, W) for gray, else (H, W, 2 to 5): color and alpha."""
    if photo.alpha is None:
        return photo.stored_pixels.squeeze(2) if photo.stored_pixels.shape[2] == 1 else photo.stored_pixels
    return np.concatenate([photo.stored_pixels, photo.alpha[..., None]], axis=2)


def is_cmyk(photo: Photo) -> bool:
    """Whether the stored pixels are amounts of ink."""
    return bool(photo.stored_pixels.shape[2] == CMYK_CHANNELS)


def in_srgb(photo: Photo) -> Photo:
    """The photo with its profile applied, at 8 bits per channel."""
    pixels = np.broadcast_to(to_8_bit(to_srgb(photo.stored_pixels, photo.icc)), (*photo.stored_pixels.shape[:2], 3))
    return replace(photo, stored_pixels=pixels, alpha=None if photo.alpha is None else to_8_bit(photo.alpha), icc=None)


def flattened(photo: Photo) -> Image.Image:
    """The 8-bit photo on white, without alpha."""
    if is_cmyk(photo):
        inks = to_8_bit(photo.stored_pixels)
        if photo.alpha is not None:
            inks = np.rint(inks * (to_8_bit(photo.alpha)[..., None] / 255)).astype(np.uint8)
        return _cmyk_image(inks)
    image = Image.fromarray(to_8_bit(planes(photo)))
    if photo.alpha is None:
        return image
    flat = Image.new("RGBA", image.size, "white")
    flat.alpha_composite(image.convert("RGBA"))
    return flat.convert("RGB" if photo.stored_pixels.shape[2] == 3 else "L")


def save(image: Image.Image, format: str, **settings: Any) -> bytes:
    """The bytes of a file of an image."""
    buffer = BytesIO()
    image.save(buffer, format, **settings)
    return buffer.getvalue()


def usable_profile(icc: bytes | None, mode: str, name: str) -> bytes | None:
    """The profile, or None where it cannot be applied to a photo of this mode and browsers would ignore it."""
    if not icc:
        return None
    try:
        _transforms.build(icc, mode)
    except (ImageCms.PyCMSError, OSError, ValueError) as error:
        _log.warning("%s: its color profile cannot be applied (%s); taken as sRGB", name, error)
        return None
    return icc


def is_srgb(pixels: np.ndarray, icc: bytes | None) -> bool:
    """Whether (H, W, C) code values are sRGB already, so that they need no conversion."""
    return pixels.shape[2] != CMYK_CHANNELS and _srgb_transform(pixels, icc) is None


def to_srgb(pixels: np.ndarray, icc: bytes | None) -> np.ndarray:
    """Convert (H, W, C) code values to sRGB.

    A profile gives three channels of 8 bits. CMYK without a profile is converted by Pillow's formula.
    """
    transform = _srgb_transform(pixels, icc)
    if pixels.shape[2] == CMYK_CHANNELS:
        image = _cmyk_image(to_8_bit(pixels))
        return np.asarray(image.convert("RGB") if transform is None else transform.apply(image))
    if transform is None:
        return pixels
    # ImageCms works in 8 bits.
    image = Image.fromarray(to_8_bit(pixels[..., 0] if pixels.shape[2] == 1 else pixels))
    return np.asarray(transform.apply(image))


def _cmyk_image(inks: np.ndarray) -> Image.Image:
    """(H, W, 4) amounts of ink, of 8 bits, as a Pillow image."""
    return Image.frombytes("CMYK", inks.shape[1::-1], inks.tobytes())


def _srgb_transform(pixels: np.ndarray, icc: bytes | None) -> ImageCms.ImageCmsTransform | None:
    return _transforms.build(icc, mode_of(pixels.shape[2])) if icc else None


def _build_transform(icc: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """The transform from a profile to sRGB; None if the profile is sRGB."""
    profile = ImageCms.ImageCmsProfile(BytesIO(icc))
    if (profile.profile.profile_description or "").startswith("sRGB"):
        return None
    return ImageCms.buildTransform(profile, ImageCms.createProfile("sRGB"), mode, "RGB")


class _Transforms(threading.local):
    """Transforms built last, one cache per thread: LittleCMS allows one thread at a time to use a transform."""

    def __init__(self) -> None:
        self.build = lru_cache(maxsize=8)(_build_transform)


_transforms = _Transforms()

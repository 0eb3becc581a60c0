"""Color profiles: conversion of a file's colors to sRGB."""

from __future__ import annotations

import logging
import threading
from functools import lru_cache
from io import BytesIO

import numpy as np
from PIL import Image, ImageCms

CMYK_CHANNELS = 4

_log = logging.getLogger("homing")


def mode_of(channels: int) -> str:
    """Pillow's name for pixels of 1, 3 or 4 color channels."""
    return {1: "L", 3: "RGB", CMYK_CHANNELS: "CMYK"}[channels]


def usable_profile(icc: bytes | None, mode: str, name: str) -> bytes | None:
    """The profile, or None where it cannot be applied to a photo of this mode and browsers would ignore it."""
    if not icc:
        return None
    try:
        _transform(icc, mode)
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
        image = cmyk_image(pixels)
        return np.asarray(image.convert("RGB") if transform is None else transform.apply(image))
    if transform is None:
        return pixels
    # ImageCms works in 8 bits.
    image = Image.fromarray(to_8_bit(pixels[..., 0] if pixels.shape[2] == 1 else pixels))
    return np.asarray(transform.apply(image))


def cmyk_image(pixels: np.ndarray) -> Image.Image:
    """(H, W, 4) amounts of ink as an 8-bit Pillow image."""
    return Image.frombytes("CMYK", pixels.shape[1::-1], to_8_bit(pixels).tobytes())


def to_8_bit(levels: np.ndarray) -> np.ndarray:
    """Round code values of 8 or 16 bits to 8 bits."""
    if levels.dtype == np.uint8:
        return levels
    return ((levels.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _build(icc: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """The transform from a profile to sRGB; None if the profile is sRGB."""
    profile = ImageCms.ImageCmsProfile(BytesIO(icc))
    if (profile.profile.profile_description or "").startswith("sRGB"):
        return None
    return ImageCms.buildTransform(profile, ImageCms.createProfile("sRGB"), mode, "RGB")


def _srgb_transform(pixels: np.ndarray, icc: bytes | None) -> ImageCms.ImageCmsTransform | None:
    return _transform(icc, mode_of(pixels.shape[2])) if icc else None


class _Transforms(threading.local):
    """Transforms built last, one cache per thread: LittleCMS allows one thread at a time to use a transform."""

    def __init__(self) -> None:
        self.build = lru_cache(maxsize=8)(_build)


_transforms = _Transforms()


def _transform(icc: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    return _transforms.build(icc, mode)

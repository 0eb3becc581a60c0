"""Detect graphics: logos, line art, screenshots of text."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFilter

from homing.photo._decode import is_lossless_webp
from homing.photo._pixels import to_8_bit
from homing.photo.photo import Photo

_FEW = 256
_FEW_GRAYS = 16  # a gray photo of 8 bits has up to 256
_PIXELS_PER_COLOR = 40  # prevents a thumbnail of few pixels from counting as a graphic
_SAMPLE = 65_536
_NEAR = 6  # in pixels, half the distance between the strokes of small letters
_TEXTURE = 0.01  # maximum share of a graphic's pixels that are far from any flat area


def graphic_kind(photo: Photo) -> str | None:
    """What makes an image a graphic, such as "12 colors" or "flat areas"; None for a photograph.

    A graphic has few colors, or, in a lossless file, almost all of its pixels are close to an exactly flat area.
    """
    pixels = to_8_bit(photo.stored_pixels) if photo.alpha is None else _visible_pixels(photo, photo.alpha)
    codes = _packed(pixels)
    gray = bool((pixels[..., :3] == pixels[..., :1]).all())  # of CMYK, too
    few = min(_FEW_GRAYS if gray else _FEW, codes.size // _PIXELS_PER_COLOR)
    # A sample of the pixels has no more colors than all of them.
    step = max(1, codes.size // _SAMPLE)
    if len(np.unique(codes.ravel()[::step])) <= few and (count := len(np.unique(codes))) <= few:
        return "one color" if count == 1 else f"{count} colors"
    lossless_webp = photo.format == "WEBP" and is_lossless_webp(photo.data)
    is_lossless = photo.format in ("PNG", "TIFF", "BMP") or lossless_webp
    return "flat areas" if is_lossless and _texture(codes) <= _TEXTURE else None


def _visible_pixels(photo: Photo, alpha: np.ndarray) -> np.ndarray:
    """8-bit pixels in which all transparent pixels have the same color."""
    pixels: np.ndarray = to_8_bit(photo.stored_pixels).copy()
    pixels[alpha == 0] = 255
    return pixels


def _packed(pixels: np.ndarray) -> np.ndarray:
    """Pack (H, W, C) 8-bit pixels into one number each: (H, W)."""
    codes = np.zeros(pixels.shape[:2], np.uint32)
    for channel in range(pixels.shape[2]):
        codes = codes << 8 | pixels[..., channel]
    return codes


def _texture(codes: np.ndarray) -> float:
    """The share of pixels that are not close to any 3 × 3 block of one color."""
    same = np.ones(codes.shape, bool)
    same[:, 1:] &= codes[:, 1:] == codes[:, :-1]
    same[1:] &= codes[1:] == codes[:-1]
    flat = same[:-2, :-2] & same[1:-1, :-2] & same[2:, :-2] & same[:-2, 1:-1] & same[1:-1, 1:-1]
    flat &= same[2:, 1:-1] & same[:-2, 2:] & same[1:-1, 2:] & same[2:, 2:]
    near = np.zeros(codes.shape, bool)
    near[1:-1, 1:-1] = flat
    # A blurred pixel is above 0 if any pixel of the box is.
    blurred = Image.fromarray(near).convert("L").filter(ImageFilter.BoxBlur(_NEAR))
    return 1 - float((np.asarray(blurred) > 0).mean())

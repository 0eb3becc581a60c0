"""Pictures to look at: conversion, differences, JND maps, a query laid over a photo, and HTML pages with them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homing._imports import load_extra
from homing._io.files import write_atomically
from homing.errors import HomingError
from homing.perception import jnd_map

MAGNIFY = 20
_SIDE = 420  # pixels: maximum side of a picture on an HTML page
# Alignment of a query with a photo:
_MIN_POINTS = 12  # inliers required: none of 900 unrelated pairs had more than 6, in 500 trials
_TOLERANCE = 3.0  # residual of an inlier, in pixels
_TRIALS = 2_000
_FRAME = (255, 64, 32)
_GAP, _CAPTION, _NARROWEST = 12, 34, 160


def to_image(pixels: Tensor) -> Image.Image:
    """Convert (3, H, W) pixels in [0, 1] to an 8-bit RGB image."""
    return Image.fromarray((pixels * 255).round().clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy())


def to_pixels(image: Image.Image) -> Tensor:
    """Convert an 8-bit RGB image to (3, H, W) pixels in [0, 1]."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def difference(before: Tensor, after: Tensor) -> Image.Image:
    """The difference of two images, magnified 20 times, around mid-gray."""
    return to_image(0.5 + MAGNIFY * (after - before))


def jnd_picture(pixels: Tensor) -> Image.Image:
    """The just-noticeable-difference map: brighter pixels may change more."""
    jnd = jnd_map(pixels[None])[0]
    return to_image((jnd / jnd.max()).expand(3, -1, -1))


def make_thumbnail(pixels: Tensor, side: int = _SIDE) -> Image.Image:
    """An image of (3, H, W) pixels, scaled down to at most `side` pixels a side."""
    image = to_image(pixels)
    image.thumbnail((side, side))
    return image


def encode_jpeg(image: Image.Image, quality: int = 90, *, optimize: bool = False) -> bytes:
    """Encode as JPEG, without metadata."""
    file = BytesIO()
    image.save(file, format="JPEG", quality=quality, optimize=optimize)
    return file.getvalue()


def encode_png(image: Image.Image) -> bytes:
    """Encode as PNG, without metadata."""
    file = BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def data_url(jpeg: bytes) -> str:
    """A data URL that holds a JPEG file."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()


def embed(image: Image.Image) -> str:
    """A data URL that holds the image as a JPEG of at most 420 pixels a side."""
    small = image.convert("RGB")
    small.thumbnail((_SIDE, _SIDE))
    return data_url(encode_jpeg(small, quality=88))


def comparison(before: Tensor, after: Tensor) -> Image.Image:
    """Before, after and the magnified difference side by side, each with a caption."""
    panels = {
        "original": to_image(before),
        "released": to_image(after),
        f"difference x{MAGNIFY}": difference(before, after),  # Pillow's default font has no ×
    }
    width, height = max(before.shape[2], _NARROWEST), before.shape[1]
    sheet = Image.new("RGB", (len(panels) * (width + _GAP) - _GAP, height + _CAPTION), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=20)
    for position, (name, panel) in enumerate(panels.items()):
        left = position * (width + _GAP)
        draw.text((left + 2, 5), name, fill="black", font=font)
        sheet.paste(panel, (left, _CAPTION))
    return sheet


def save_png(image: Image.Image, path: Path) -> None:
    """Write a PNG file. Raises HomingError if the path cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, encode_png(image))
    except OSError as error:
        raise HomingError(f"cannot write the picture {path}: {error.strerror}") from error


def render_page(template: str, values: Mapping[str, object], package: str = "homing") -> bytes:
    """Fill in a template of a package, or of homing itself, for an HTML page that loads nothing else.

    Values are escaped unless the template marks them safe.
    """
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, "homing"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return templates.get_template(template).render(values).encode(errors="replace")


@dataclass(frozen=True)
class Alignment:
    """The part of a photo that a query shows.

    `image` is the photo warped to the query's size, valid where `mask` (H, W) is true; `corners` are the query's four
    corners in the photo.
    """

    image: Image.Image
    mask: np.ndarray
    corners: list[tuple[float, float]]


@dataclass(frozen=True)
class Overlay:
    """A photo with the outline of the query, its part warped to the query's shape, and the difference of the two."""

    framed: Image.Image
    overlay: Image.Image
    difference: Image.Image


def align(query: Image.Image, photo: Image.Image) -> Alignment | None:
    """Align a photo with a query that may be a copy of it. None if too few local features agree."""
    transform = load_extra("skimage.transform", extra="serve")
    photo_features = _features(photo)
    for mirrored in (False, True):
        fitted = _fit_affine(
            _features(query.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else query), photo_features
        )
        if fitted is None:
            continue
        width, height = query.size
        to_photo = transform.AffineTransform([[-1, 0, width - 1], [0, 1, 0], [0, 0, 1]] if mirrored else np.eye(3))
        to_photo = transform.AffineTransform(fitted @ to_photo.params)
        size, colors = (height, width), np.asarray(photo) / 255
        warped = transform.warp(colors, to_photo, output_shape=size, cval=1.0)
        mask = transform.warp(np.ones(colors.shape[:2]), to_photo, output_shape=size) > 0.99
        corners = to_photo(np.array([(0, 0), (width, 0), (width, height), (0, height)]))
        aligned = Image.fromarray((warped * 255).round().astype(np.uint8))
        return Alignment(aligned, mask, [(float(x), float(y)) for x, y in corners])
    return None


def _features(image: Image.Image) -> tuple[np.ndarray, np.ndarray]:
    """SIFT keypoints (N, 2) as (x, y), and their descriptors (N, 128)."""
    detector = load_extra("skimage.feature", extra="serve").SIFT()
    try:
        detector.detect_and_extract(np.asarray(image.convert("L")) / 255)
    except RuntimeError:  # no keypoints
        return np.empty((0, 2)), np.empty((0, 128))
    return detector.keypoints[:, ::-1].astype(float), detector.descriptors


def _fit_affine(
    query_features: tuple[np.ndarray, np.ndarray], photo_features: tuple[np.ndarray, np.ndarray]
) -> np.ndarray | None:
    """The affine map (3, 3) from query keypoints to photo keypoints by RANSAC, or None if too few points agree."""
    if min(len(query_features[0]), len(photo_features[0])) < _MIN_POINTS:
        return None
    feature, measure, transform = (
        load_extra(f"skimage.{name}", extra="serve") for name in ("feature", "measure", "transform")
    )
    pairs = feature.match_descriptors(query_features[1], photo_features[1], max_ratio=0.8, cross_check=True)
    if len(pairs) < _MIN_POINTS:
        return None
    fitted, inliers = measure.ransac(
        (query_features[0][pairs[:, 0]], photo_features[0][pairs[:, 1]]),
        transform.AffineTransform,
        min_samples=3,
        residual_threshold=_TOLERANCE,
        max_trials=_TRIALS,
        rng=0,
    )
    if inliers is None or inliers.sum() < _MIN_POINTS:
        return None
    return np.asarray(fitted.params)


def overlay_photo(query: Image.Image, photo: Image.Image) -> Overlay | None:
    """Images that show how a query lies in a photo. None if the two cannot be aligned."""
    alignment = align(query, photo)
    if alignment is None:
        return None
    framed = photo.copy()
    ImageDraw.Draw(framed).polygon(alignment.corners, outline=_FRAME, width=3)
    change = np.asarray(query, dtype=float) - np.asarray(alignment.image, dtype=float)
    # Outside of the match, as in a caption above the photo, the query itself is shown.
    change = np.where(alignment.mask[..., None], 127.5 + change, np.asarray(query))
    return Overlay(framed, alignment.image, Image.fromarray(change.round().clip(0, 255).astype(np.uint8)))

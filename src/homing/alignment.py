"""Alignment of two images of one scene by an affine transform, mirrored or not, and overlays of the two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from homing._extras import load_extra

_MIN_POINTS = 12  # inliers required: none of 900 unrelated pairs had more than 6, in 500 trials
_TOLERANCE = 3.0  # residual of an inlier, in pixels
_TRIALS = 2_000
_FRAME = (255, 64, 32)


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

"""Two pictures of one scene laid over each other, as far as a crop, a turn, a mirror and a stretch tell them apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from homing._extras import load_extra

_MIN_POINTS = 12  # points that must agree: of 900 unrelated pairs none had more than 6, in 500 trials
_TOLERANCE = 3.0  # pixels that a point may be off
_TRIALS = 2_000


@dataclass(frozen=True)
class Alignment:
    """What a photo shows of a query: `picture` is of the query's size, and counts where `inside` (H, W) says so.

    `frame` holds the query's four corners in the photo.
    """

    image: Image.Image
    mask: np.ndarray
    corners: list[tuple[float, float]]


def align(query: Image.Image, photo: Image.Image) -> Alignment | None:
    """Lay a photo over a query of which it may be the original; None if too little of them agrees."""
    transform = load_extra("skimage.transform", extra="demo")
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
    """Places (N, 2), across and down, and what they look like (N, 128)."""
    detector = load_extra("skimage.feature", extra="demo").SIFT()
    try:
        detector.detect_and_extract(np.asarray(image.convert("L")) / 255)
    except RuntimeError:  # there are none
        return np.empty((0, 2)), np.empty((0, 128))
    return detector.keypoints[:, ::-1].astype(float), detector.descriptors


def _fit_affine(
    query_features: tuple[np.ndarray, np.ndarray], photo_features: tuple[np.ndarray, np.ndarray]
) -> np.ndarray | None:
    """The affine map (3, 3) from our places to theirs that most pairs of places alike agree on, if enough do."""
    if min(len(query_features[0]), len(photo_features[0])) < _MIN_POINTS:
        return None
    feature, measure, transform = (
        load_extra(f"skimage.{name}", extra="demo") for name in ("feature", "measure", "transform")
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

"""Two pictures of one scene laid over each other, as far as a crop, a turn, a mirror and a stretch tell them apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from homing._extras import load_extra

_FEWEST = 12  # points that must agree: of 900 unrelated pairs none had more than 6, in 500 trials
_OFF = 3.0  # pixels that a point may be off
_TRIALS = 2_000


@dataclass(frozen=True)
class Alignment:
    """What a photo shows of a query: `picture` is of the query's size, and counts where `inside` (H, W) says so.

    `frame` holds the query's four corners in the photo.
    """

    picture: Image.Image
    inside: np.ndarray
    frame: list[tuple[float, float]]


def align(query: Image.Image, photo: Image.Image) -> Alignment | None:
    """Lay a photo over a query of which it may be the original; None if too little of them agrees."""
    transform = load_extra("skimage.transform", extra="demo")
    theirs = _features(photo)
    for mirrored in (False, True):
        found = _agreement(_features(query.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else query), theirs)
        if found is None:
            continue
        width, height = query.size
        to_photo = transform.AffineTransform([[-1, 0, width - 1], [0, 1, 0], [0, 0, 1]] if mirrored else np.eye(3))
        to_photo = transform.AffineTransform(found @ to_photo.params)
        size, colours = (height, width), np.asarray(photo) / 255
        laid = transform.warp(colours, to_photo, output_shape=size, cval=1.0)
        inside = transform.warp(np.ones(colours.shape[:2]), to_photo, output_shape=size) > 0.99
        corners = to_photo(np.array([(0, 0), (width, 0), (width, height), (0, height)]))
        picture = Image.fromarray((laid * 255).round().astype(np.uint8))
        return Alignment(picture, inside, [(float(x), float(y)) for x, y in corners])
    return None


def _features(image: Image.Image) -> tuple[np.ndarray, np.ndarray]:
    """Places (N, 2), across and down, and what they look like (N, 128)."""
    detector = load_extra("skimage.feature", extra="demo").SIFT()
    try:
        detector.detect_and_extract(np.asarray(image.convert("L")) / 255)
    except RuntimeError:  # there are none
        return np.empty((0, 2)), np.empty((0, 128))
    return detector.keypoints[:, ::-1].astype(float), detector.descriptors


def _agreement(ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> np.ndarray | None:
    """The affine map (3, 3) from our places to theirs that most pairs of places alike agree on, if enough do."""
    if min(len(ours[0]), len(theirs[0])) < _FEWEST:
        return None
    feature, measure, transform = (
        load_extra(f"skimage.{name}", extra="demo") for name in ("feature", "measure", "transform")
    )
    pairs = feature.match_descriptors(ours[1], theirs[1], max_ratio=0.8, cross_check=True)
    if len(pairs) < _FEWEST:
        return None
    found, agree = measure.ransac(
        (ours[0][pairs[:, 0]], theirs[0][pairs[:, 1]]),
        transform.AffineTransform,
        min_samples=3,
        residual_threshold=_OFF,
        max_trials=_TRIALS,
        rng=0,
    )
    if agree is None or agree.sum() < _FEWEST:
        return None
    return np.asarray(found.params)

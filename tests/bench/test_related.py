"""Photos of the same scene among the nearest pairs."""

from pathlib import Path

import numpy as np
from PIL import Image

from homing.bench.benches.calibration import related_pairs


def test_a_crop_is_related_and_another_photo_is_not(photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "flower.jpg") as flower:
        flower.crop((60, 40, 560, 400)).save(tmp_path / "part.jpg")
    rows = np.eye(3, dtype=np.float32)  # all pairs are equally near, so each is checked
    pairs_seen: list[None] = []
    paths = [photos / "rocket.jpg", photos / "flower.jpg", tmp_path / "part.jpg"]
    related = related_pairs(paths, rows, lambda: pairs_seen.append(None))
    assert related.tolist() == [[1, 2]]
    assert len(pairs_seen) == 3

"""Of photos that lie near each other, those that show one scene."""

from pathlib import Path

import numpy as np
from PIL import Image

from homing.evaluation.related import related_pairs


def test_a_part_of_a_photo_is_related_and_another_photo_is_not(photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "flower.jpg") as flower:
        flower.crop((60, 40, 560, 400)).save(tmp_path / "part.jpg")
    rows = np.eye(3, dtype=np.float32)  # all lie as near: each pair is looked at
    pairs_seen: list[None] = []
    paths = [photos / "rocket.jpg", photos / "flower.jpg", tmp_path / "part.jpg"]
    related = related_pairs(paths, rows, lambda: pairs_seen.append(None))
    assert related.tolist() == [[1, 2]]
    assert len(pairs_seen) == 3

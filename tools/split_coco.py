"""Split COCO train2017 into training photos, validation photos and distractors.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER OUT

Photos are ordered by a hash of their names. The last 90,000 go to OUT/train as small copies (192 px WebP). The first
500 are copied unchanged to OUT/validation and the others to OUT/distractors; no network or codebook is trained on them.
"""

from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image
from rich.progress import track

TRAIN = 90_000
VALIDATION = 500
SIDE = 192
QUALITY = 70


def main(
    coco: Annotated[Path, typer.Argument(help="The folder of COCO train2017's JPEG files.")],
    out: Annotated[Path, typer.Argument(help="The folder to write train/, validation/ and distractors/ into.")],
) -> None:
    """Copy every photo to its part of the split."""
    photos = sorted(coco.glob("*.jpg"), key=lambda path: hashlib.sha256(path.name.encode()).digest())
    if len(photos) <= TRAIN + VALIDATION:
        raise typer.BadParameter(f"{coco} must hold more than {TRAIN + VALIDATION:,} .jpg files, got {len(photos):,}")
    others, train_photos = photos[:-TRAIN], photos[-TRAIN:]
    for folder in ("validation", "distractors", "train"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(track(others, description="Validation and distractors")):
        shutil.copyfile(path, out / ("validation" if number < VALIDATION else "distractors") / path.name)
    targets = [(out / "train" / path.name).with_suffix(".webp") for path in train_photos]
    with ProcessPoolExecutor() as pool:
        for _ in track(
            pool.map(_shrink, train_photos, targets, chunksize=64),
            description="Training photos",
            total=len(train_photos),
        ):
            pass


def _shrink(source: Path, target: Path) -> None:
    with Image.open(source) as image:
        image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(target, quality=QUALITY)


if __name__ == "__main__":
    typer.run(main)

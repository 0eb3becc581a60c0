"""Splits COCO train2017 into what teaches, what settings are chosen by, and what stays a stranger.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER OUT

Photos are ordered by a hash of their names. The last 90,000 go to OUT/taught as small copies (192 px WebP): all that
training looks at. The first 500 are copied to OUT/validation and the others to OUT/strangers, as they are: no network
and no codebook learns from them.
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

TAUGHT = 90_000
VALIDATION = 500
SIDE = 192
QUALITY = 70


def main(
    coco: Annotated[Path, typer.Argument(help="The folder of COCO train2017's JPEG files.")],
    out: Annotated[Path, typer.Argument(help="The folder to write taught/, validation/ and strangers/ into.")],
) -> None:
    """Copy every photo to the part it belongs to."""
    photos = sorted(coco.glob("*.jpg"), key=lambda path: hashlib.sha256(path.name.encode()).digest())
    if len(photos) <= TAUGHT + VALIDATION:
        raise typer.BadParameter(f"{coco} must hold more than {TAUGHT + VALIDATION:,} .jpg files, got {len(photos):,}")
    others, taught = photos[:-TAUGHT], photos[-TAUGHT:]
    for folder in ("validation", "strangers", "taught"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for place, path in enumerate(track(others, description="Validation and strangers")):
        shutil.copyfile(path, out / ("validation" if place < VALIDATION else "strangers") / path.name)
    targets = [(out / "taught" / path.name).with_suffix(".webp") for path in taught]
    with ProcessPoolExecutor() as pool:
        for _ in track(pool.map(_shrink, taught, targets, chunksize=64), description="Taught", total=len(taught)):
            pass


def _shrink(source: Path, target: Path) -> None:
    with Image.open(source) as image:
        image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(target, quality=QUALITY)


if __name__ == "__main__":
    typer.run(main)

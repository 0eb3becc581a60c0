"""Build the codebook homing-1 and its distractors from a trained network.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER SPLIT
    homing train descriptor SPLIT/train --out homing-1.safetensors --seed 1
    python tools/build_homing_1.py homing-1.safetensors SPLIT OUT
    python tools/measure_null_distribution.py OUT/homing-1.codebook SPLIT/distractors OUT/homing-1.codebook --skip 14400

The codebook is trained on the training photos of the network only, whole and in crops.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.progress import track

from homing._io.files import write_atomically
from homing.codebooks import Codebook, Distractors
from homing.extractors import Extractor
from homing.extractors.crops import crop_windows, describe_windows
from homing.extractors.descriptor_network import as_extractor, read_network
from homing.photo import find_photos
from homing.training.data import PhotoArray, load_photo_array

NAME = "homing-1"
SPEC = "IVF4096,PQ8x8"
SIDES = {"train": 192, "validation": 256, "distractors": 256}
BATCH = 256
HELD_OUT = 14_400  # distractors reserved for homing bench calibration; the others give the null distribution


def main(
    network: Annotated[Path, typer.Argument(help="The network, written by homing train descriptor.")],
    split: Annotated[Path, typer.Argument(help="The folder with train/, validation/ and distractors/.")],
    out: Annotated[Path, typer.Argument(help="The output folder.")],
    per_photo: Annotated[
        int, typer.Option(min=1, help="Training descriptors per photo: the whole photo, then crops.")
    ] = 12,
) -> None:
    """Train the codebook and encode all photos of COCO."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(network, out / f"{NAME}.safetensors")
    extractor = as_extractor(*read_network(str(network)), name=NAME)
    squares = {part: squares_in(split / part, side, out) for part, side in SIDES.items()}
    train_rows = descriptors_of(extractor, squares["train"], per_photo)
    others = [descriptors_of(extractor, squares[part], 1) for part in SIDES if part != "train"]
    whole = np.concatenate([train_rows[::per_photo], *others])
    names = [found.path.stem for part in SIDES for found in find_photos([split / part])]
    numbers = np.array([int(name) for name in names], dtype=np.int32)
    shuffled = train_rows[np.random.default_rng(0).permutation(len(train_rows))]  # consecutive rows belong to one photo
    unrelated = others[-1][HELD_OUT:]
    book = Codebook.train(shuffled, spec=SPEC, extractor=extractor, name=NAME, photos=unrelated)
    book.write(out / f"{NAME}.codebook")
    distractors = Distractors(book.encode(torch.from_numpy(whole)), numbers)
    write_atomically(out / f"{NAME}.distractors", distractors.to_bytes())
    print(f"{NAME} {book.fingerprint[:12]}: {SPEC}, trained on {len(train_rows):,} descriptors, {len(whole):,} codes")


def squares_in(folder: Path, side: int, out: Path) -> PhotoArray:
    """Load the photos of a folder as squares, cached in `out`."""
    cache = out / "squares" / folder.name
    cache.mkdir(parents=True, exist_ok=True)
    squares = load_photo_array([found.path for found in find_photos([folder])], side, cache, lambda: None)
    assert not squares.failures, squares.failures
    return squares


def descriptors_of(extractor: Extractor, squares: PhotoArray, count: int) -> np.ndarray:
    """Descriptors of every photo, whole and in crops: (N · count, dim), photo by photo."""
    rows: list[np.ndarray] = []
    for start in track(range(0, len(squares), BATCH), description="Describing"):
        pixels = torch.from_numpy(squares.pixels[start : start + BATCH].copy())
        windows = np.concatenate([crop_windows(start + offset, count) for offset in range(len(pixels))])
        owners = torch.arange(len(pixels)).repeat_interleave(count)
        rows += describe_windows(extractor, pixels, owners, torch.from_numpy(windows))
    return np.concatenate(rows)


if __name__ == "__main__":
    typer.run(main)

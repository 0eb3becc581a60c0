"""Makes the codebook homing-1 and its background, for a network trained before.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER SPLIT
    homing train descriptor SPLIT/taught --out homing-1.safetensors --seed 1
    python tools/build_homing_1.py homing-1.safetensors SPLIT OUT
    python tools/measure_unrelated.py OUT/homing-1.codebook SPLIT/strangers OUT/homing-1.codebook --skip 14400

The codebook learns from the photos that taught the network, whole and in crops, and from no others.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.progress import track

from homing._files import write_atomically
from homing.codebooks import Background, Codebook
from homing.extractors import Extractor
from homing.extractors.crops import crop_windows, describe_windows
from homing.extractors.trained import as_extractor, read_network
from homing.photo import gather
from homing.training.squares import Squares, squares_of

NAME = "homing-1"
SPEC = "IVF4096,PQ8x8"
SIDES = {"taught": 192, "validation": 256, "strangers": 256}
BATCH = 256
UNMEASURED = 14_400  # strangers that are left for homing bench sure; the others tell how far unrelated photos lie apart


def main(
    network: Annotated[Path, typer.Argument(help="The network, written by homing train descriptor.")],
    split: Annotated[Path, typer.Argument(help="The folder with taught/, validation/ and strangers/.")],
    out: Annotated[Path, typer.Argument(help="The folder to write into.")],
    per_photo: Annotated[
        int, typer.Option(min=1, help="Descriptors to learn from of each photo: whole, then crops.")
    ] = 12,
) -> None:
    """Train the codebook and encode all photos of COCO."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(network, out / f"{NAME}.safetensors")
    extractor = as_extractor(*read_network(str(network)), name=NAME)
    squares = {part: squares_in(split / part, side, out) for part, side in SIDES.items()}
    taught = descriptors_of(extractor, squares["taught"], per_photo)
    others = [descriptors_of(extractor, squares[part], 1) for part in SIDES if part != "taught"]
    whole = np.concatenate([taught[::per_photo], *others])
    names = [found.path.stem for part in SIDES for found in gather([split / part])]
    numbers = np.array([int(name) for name in names], dtype=np.int32)
    shuffled = taught[np.random.default_rng(0).permutation(len(taught))]  # neighbours in a row are of one photo
    unrelated = others[-1][UNMEASURED:]
    book = Codebook.train(shuffled, spec=SPEC, extractor=extractor, name=NAME, photos=unrelated)
    book.write(out / f"{NAME}.codebook")
    background = Background(book.encode(torch.from_numpy(whole)), numbers)
    write_atomically(out / f"{NAME}.background", background.to_bytes())
    print(f"{NAME} {book.fingerprint[:12]}: {SPEC}, taught on {len(taught):,} descriptors, {len(whole):,} codes")


def squares_in(folder: Path, side: int, out: Path) -> Squares:
    """The photos of a folder as squares, kept in `out`."""
    kept = out / "squares" / folder.name
    kept.mkdir(parents=True, exist_ok=True)
    squares = squares_of([found.path for found in gather([folder])], side, kept, lambda: None)
    assert not squares.failures, squares.failures
    return squares


def descriptors_of(extractor: Extractor, squares: Squares, count: int) -> np.ndarray:
    """Descriptors of every photo, whole and in crops: (N · count, dim), photo by photo."""
    rows: list[np.ndarray] = []
    for start in track(range(0, len(squares), BATCH), description="Describing"):
        pixels = torch.from_numpy(squares.pixels[start : start + BATCH].copy())
        windows = np.concatenate([crop_windows(start + place, count) for place in range(len(pixels))])
        owners = torch.arange(len(pixels)).repeat_interleave(count)
        rows += describe_windows(extractor, pixels, owners, torch.from_numpy(windows))
    return np.concatenate(rows)


if __name__ == "__main__":
    typer.run(main)

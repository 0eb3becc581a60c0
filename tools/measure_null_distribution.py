"""Measure the null distribution of a codebook on unrelated photos and write the codebook with it.

    python tools/measure_null_distribution.py homing-1.codebook PHOTOS homing-1.codebook

The quantizer and the fingerprint stay unchanged. The photos must not be training photos of the network, nor related to
the photos that `homing bench calibration` runs on afterwards. Pairs of photos of one scene are excluded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from homing import extractors
from homing.bench.benches.calibration import related_pairs
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors.crops import describe_crops
from homing.photo import find_photos


def _refuse(error: PhotoError | None) -> None:
    if error is not None:
        raise error


def main(
    codebook: Annotated[Path, typer.Argument(help="The codebook to read.")],
    photos: Annotated[Path, typer.Argument(help="A folder of unrelated photos.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    skip: Annotated[int, typer.Option(min=0, help="Number of photos to skip at the start.")] = 0,
) -> None:
    """Describe the photos, find related pairs and measure the null distribution."""
    book = Codebook.read(codebook)
    extractor = extractors.load(book.extractor)
    book.check(extractor)
    paths = [found.path for found in find_photos([photos])][skip:]
    rows = np.concatenate(list(describe_crops(extractor, paths, len(paths), _refuse)))
    related = related_pairs(paths, rows, lambda: None)
    book.with_null_distribution(rows, related).write(out)
    print(f"{book.name}: {len(rows):,} photos, {len(related)} related pairs left out")


if __name__ == "__main__":
    typer.run(main)

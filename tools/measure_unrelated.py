"""Measures how far unrelated photos lie apart for a codebook, and writes the codebook anew with that.

    python tools/measure_unrelated.py homing-1.codebook PHOTOS homing-1.codebook

The quantiser, and with it the fingerprint, stays what it is. The photos must be none that taught the network, and
related neither to each other nor to those that `homing bench sure` is run on afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from homing import extractors
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors.crops import describe_crops
from homing.photo import gather


def _refuse(error: PhotoError | None) -> None:
    if error is not None:
        raise error


def main(
    codebook: Annotated[Path, typer.Argument(help="The codebook as it is.")],
    photos: Annotated[Path, typer.Argument(help="A folder of unrelated photos.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    skip: Annotated[int, typer.Option(min=0, help="Leave out so many of the first photos.")] = 0,
) -> None:
    """Describe the photos, each whole, and measure."""
    book = Codebook.read(codebook)
    extractor = extractors.load(book.extractor)
    book.check(extractor)
    paths = [found.path for found in gather([photos])][skip:]
    rows = np.concatenate(list(describe_crops(extractor, paths, len(paths), _refuse)))
    book.measured_on(rows).write(out)
    print(f"{book.name}: {len(rows):,} photos")


if __name__ == "__main__":
    typer.run(main)

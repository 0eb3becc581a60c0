"""homing codebook train: train a quantizer on your own photos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import PhotoPaths, console, err_console
from homing.cli._progress import progress
from homing.errors import HomingError

app = typer.Typer(help="Train codebooks of your own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Train codebooks of your own."""


@app.command("train")
def train(
    photos: PhotoPaths,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("my.codebook"),
    spec: Annotated[str, typer.Option(help="The index as a FAISS factory string.")] = "IVF1024,PQ8x8",
    extractor: Annotated[str, typer.Option(help="The network; list networks with: homing extractors.")] = "homing-1",
    descriptors: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many descriptors to train on: whole photos first, then random crops, equally many per photo.",
            show_default="one per photo",
        ),
    ] = None,
) -> None:
    """Train a codebook on photos like those you will index. A codebook never changes afterwards.

    Example:

        homing codebook train photos/ --spec IVF256,PQ8x8 --out mine.codebook
    """
    from homing import extractors
    from homing._io.files import prepare_output_folder
    from homing.photo import find_photos
    from homing.training.codebooks import train_codebook

    if out.exists():
        raise HomingError(f"{out} exists, and a codebook never changes; choose another --out")
    prepare_output_folder(out.parent)
    found = find_photos(photos)
    with progress("Describing", min(len(found), descriptors or len(found))) as advance:
        trained = train_codebook(
            [item.path for item in found],
            spec=spec,
            extractor=extractors.load(extractor),
            name=out.stem,
            descriptors=descriptors,
            report=advance,
        )
    for failure in trained.failures:
        err_console.print(f"failed    {failure}", style="red", soft_wrap=True, markup=False)
    trained.codebook.write(out)
    learned = f"{trained.photos:,} photos ({trained.descriptors:,} descriptors)"
    console.print(f"Wrote {out}: {spec}, trained on {learned}.", highlight=False)
    raise typer.Exit(int(bool(trained.failures)))

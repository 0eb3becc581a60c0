"""homing codebook train: train a quantizer on your own photos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._app import App
from homing.cli._console import PhotoPaths, console, err_console
from homing.cli._progress import progress
from homing.errors import HomingError

app = App(help="Train codebooks of your own.", no_args_is_help=True)


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


@app.command("import")
def import_(
    index: Annotated[Path, typer.Argument(help="A file of a trained FAISS index; its vectors are left out.")],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("my.codebook"),
    extractor: Annotated[str, typer.Option(help="The network: see homing extractors.")] = "homing-1",
    photos: Annotated[
        Path | None,
        typer.Option(
            help="A folder of unrelated photos, on which the null distribution is measured.",
            show_default="the bundled distractors, for bundled extractors",
        ),
    ] = None,
) -> None:
    """Make a codebook from a FAISS index trained elsewhere.

    Example:

        homing codebook import mine.faiss --extractor homing-1 --out mine.codebook
    """
    import numpy as np

    from homing import extractors
    from homing._io.files import prepare_output_folder
    from homing.codebooks import Codebook
    from homing.errors import PhotoError
    from homing.extractors.crops import describe_crops
    from homing.photo import find_photos

    if out.exists():
        raise HomingError(f"{out} exists, and a codebook never changes; choose another --out")
    prepare_output_folder(out.parent)
    network = extractors.load(extractor)
    descriptors, failures = None, list[PhotoError]()
    if photos is not None:
        paths = [item.path for item in find_photos([photos])]
        with progress("Describing", len(paths)) as advance:

            def report(failure: PhotoError | None) -> None:
                advance()
                failures.extend([failure] if failure else [])

            batches = list(describe_crops(network, paths, len(paths), report))
        if not batches:
            raise HomingError(f"none of the {len(failures)} photos can be read; the first error: {failures[0]}")
        descriptors = np.concatenate(batches)
    book = Codebook.from_faiss(index, extractor=network, name=out.stem, descriptors=descriptors)
    for failure in failures:
        err_console.print(f"failed    {failure}", style="red", soft_wrap=True, markup=False)
    book.write(out)
    console.print(f"Wrote {out}: {book.spec}, {book.code_size} bytes per code.", highlight=False)
    raise typer.Exit(int(bool(failures)))

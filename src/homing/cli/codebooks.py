"""homing codebooks: list those that are bundled; homing codebook: train one, or take that of a FAISS index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import homing
from homing._io.files import prepare_output_folder
from homing.cli._app import App, PhotoPaths
from homing.cli._console import JsonFlag, console, print_failure, print_rows
from homing.cli._progress import progress
from homing.errors import HomingError, PhotoError

app = App(help="Train codebooks of your own.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="The file to write.")]


def codebooks(json: JsonFlag = False) -> None:
    """List the bundled codebooks. Train your own with: homing codebook train."""
    columns = ("name", "spec", "extractor", "fingerprint")
    books = [homing.load_codebook(name) for name in homing.available_codebooks()]
    print_rows([{name: getattr(book, name) for name in columns} for book in books], json)


@app.command("train")
def train(
    photos: PhotoPaths,
    out: Out = Path("my.codebook"),
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
    from homing.training.codebooks import train_codebook

    _check_new(out)
    found = homing.photo.find_photos(photos)
    with progress("Describing", min(len(found), descriptors or len(found))) as advance:
        trained = train_codebook(
            [item.path for item in found],
            spec=spec,
            extractor=homing.extractors.load(extractor),
            name=out.stem,
            descriptors=descriptors,
            report=advance,
        )
    trained.codebook.write(out)
    counts = f"{trained.photos:,} photos ({trained.descriptors:,} descriptors)"
    _finish(f"Wrote {out}: {spec}, trained on {counts}.", trained.failures)


@app.command("import")
def import_(
    index: Annotated[Path, typer.Argument(help="A file of a trained FAISS index; its vectors are left out.")],
    out: Out = Path("my.codebook"),
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
    from homing.training.codebooks import describe_photos

    _check_new(out)
    network, descriptors, failures = homing.extractors.load(extractor), None, list[PhotoError]()
    if photos is not None:
        paths = [item.path for item in homing.photo.find_photos([photos])]
        with progress("Describing", len(paths)) as advance:
            descriptors, failures = describe_photos(network, paths, len(paths), advance)
    book = homing.Codebook.from_faiss(index, extractor=network, name=out.stem, descriptors=descriptors)
    book.write(out)
    _finish(f"Wrote {out}: {book.spec}, {book.code_size} bytes per code.", failures)


def _check_new(out: Path) -> None:
    if out.exists():
        raise HomingError(f"{out} exists, and a codebook never changes; choose another --out")
    prepare_output_folder(out.parent)


def _finish(text: str, failures: Sequence[PhotoError]) -> None:
    """Print the failures and what was written. Ends the command."""
    for failure in failures:
        print_failure(failure)
    console.print(text)
    raise typer.Exit(int(bool(failures)))

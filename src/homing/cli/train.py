"""homing train descriptor: a network of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._screen import PhotoPaths, messages, progress, screen
from homing.errors import HomingError
from homing.training.settings import Settings

DEFAULT = Settings()

app = typer.Typer(help="Train networks of your own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Train networks of your own."""


@app.command("descriptor")
def descriptor(
    photos: PhotoPaths,
    out: Annotated[Path, typer.Option(help="The file to write, ending in .safetensors.")],
    init: Annotated[
        str, typer.Option(help="Where to start: imagenet-lite0, homing-1, timm:NAME or a FILE.safetensors.")
    ] = DEFAULT.init,
    epochs: Annotated[float, typer.Option(help="How often each photo is seen.")] = DEFAULT.epochs,
    pairs: Annotated[int, typer.Option(help="Photos in a batch, each with one edited copy.")] = DEFAULT.pairs,
    dim: Annotated[int, typer.Option(help="Dimension of the descriptors.")] = DEFAULT.dim,
    size: Annotated[int, typer.Option(help="Pixels a side that the network will look at.")] = DEFAULT.size,
    training_size: Annotated[int, typer.Option(help="Pixels a side while training.")] = DEFAULT.training_size,
    temperature: Annotated[
        float, typer.Option(help="Of the contrast: lower spreads descriptors evenly.")
    ] = DEFAULT.temperature,
    koleo: Annotated[float, typer.Option(help="Weight of the differential entropy; SSCD's is 30.")] = DEFAULT.koleo,
    cells: Annotated[
        int, typer.Option(help="Cells a copy is taught to share with its original; 0: none.")
    ] = DEFAULT.cells,
    cell_weight: Annotated[float, typer.Option(help="Weight of that lesson.")] = DEFAULT.cell_weight,
    mixup: Annotated[float, typer.Option(help="Share of the copies that are blends of two.")] = DEFAULT.mixup,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = DEFAULT.rate,
    seed: Annotated[int, typer.Option(help="Another seed, another network.")] = DEFAULT.seed,
) -> None:
    """Teach a network to know photos from their edited copies (the way of SSCD). An interrupted run goes on.

    Beside FILE.safetensors a folder FILE.run holds checkpoint, record and curves.

    Example:

        homing train descriptor photos/ --out mynet.safetensors
    """
    from homing._drawing import check_drawing
    from homing._machine import default_device
    from homing.photo import gather
    from homing.training.curves import Point
    from homing.training.run import Run, check_settings
    from homing.training.squares import squares_of

    settings = Settings(
        init=init,
        epochs=epochs,
        pairs=pairs,
        dim=dim,
        size=size,
        training_size=training_size,
        temperature=temperature,
        koleo=koleo,
        cells=cells,
        cell_weight=cell_weight,
        mixup=mixup,
        rate=rate,
        seed=seed,
    )
    if out.suffix != ".safetensors":
        raise HomingError(f"the network is written as .safetensors, got --out {out}")
    if out.exists():
        raise HomingError(f"{out} exists; choose another --out")
    check_drawing("train")
    folder = out.with_suffix(".run")
    found = gather(photos)
    if inside := next(
        (path for path in photos if path.is_dir() and folder.resolve().is_relative_to(path.resolve())), None
    ):
        raise HomingError(
            f"{out} lies among the photos in {inside}, and pictures of it would too; choose another --out"
        )
    check_settings(folder, settings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HomingError(f"cannot write {folder}: {error.strerror}") from error
    with progress("Reading", len(found)) as advance:
        squares = squares_of([item.path for item in found], training_size, folder, advance)
    for failure in squares.failures:
        messages.print(f"failed    {failure}", style="red", soft_wrap=True, markup=False)
    run = Run(folder, squares, settings, default_device())

    def look(point: Point) -> None:
        messages.print(
            f"step {point.step:>6,} of {run.trainer.steps:,}   loss {point.loss:.3f}   "
            f"{point.views_per_second:,.0f} views/s   held-out recall {point.recall:.3f}",
            highlight=False,
        )

    with progress("Training", run.trainer.steps, done=run.trainer.step, resumable=True) as advance:
        extractor, recall = run.train(out, advance, look)
    screen.print(
        f"Wrote {out}: {extractor.dim}-d, held-out recall {recall:.3f}; record and curves in {folder}.",
        highlight=False,
    )
    raise typer.Exit(int(bool(squares.failures)))

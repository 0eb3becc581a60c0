"""homing train descriptor: a network of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homing.cli._screen import PhotoPaths, messages, progress, screen
from homing.errors import HomingError

app = typer.Typer(help="Train networks of your own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Train networks of your own."""


@app.command("descriptor")
def descriptor(
    photos: PhotoPaths,
    out: Annotated[Path, typer.Option(help="The file to write, ending in .safetensors.")],
    init: Annotated[
        str, typer.Option(help="Where to start: imagenet-lite0, timm:NAME or a FILE.safetensors trained before.")
    ] = "imagenet-lite0",
    epochs: Annotated[float, typer.Option(help="How often each photo is seen.")] = 20.0,
    pairs: Annotated[int, typer.Option(help="Photos in a batch, each with one edited copy.")] = 1024,
    dim: Annotated[int, typer.Option(help="Dimension of the descriptors.")] = 512,
    size: Annotated[int, typer.Option(help="Pixels a side that the network will look at.")] = 224,
    training_size: Annotated[int, typer.Option(help="Pixels a side while training.")] = 192,
    temperature: Annotated[float, typer.Option(help="Of the contrast: lower spreads descriptors evenly.")] = 0.1,
    koleo: Annotated[float, typer.Option(help="Weight of the differential entropy; SSCD's is 30.")] = 0.0,
    cells: Annotated[int, typer.Option(help="Cells a copy is taught to share with its original; 0: none.")] = 0,
    cell_weight: Annotated[float, typer.Option(help="Weight of that lesson.")] = 0.1,
    mixup: Annotated[float, typer.Option(help="Share of the copies that are blends of two.")] = 0.0,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Another seed, another network.")] = 0,
) -> None:
    """Teach a network to know photos from their edited copies (the SSCD recipe). An interrupted run goes on.

    Beside FILE.safetensors a folder FILE.run holds checkpoint, record and curves.

    Example:

        homing train descriptor photos/ --out mynet.safetensors
    """
    import torch

    from homing.photo import gather
    from homing.training.curves import Point, check_drawing
    from homing.training.run import Run
    from homing.training.settings import Settings
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
    check_drawing()
    folder = out.with_suffix(".run")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HomingError(f"cannot write {folder}: {error.strerror}") from error
    found = gather(photos)
    with progress("Reading", len(found)) as advance:
        squares = squares_of([item.path for item in found], training_size, folder, advance)
    for failure in squares.failures:
        messages.print(f"failed    {failure}", style="red", soft_wrap=True, markup=False)
    run = Run(folder, squares, settings, torch.device("cuda" if torch.cuda.is_available() else "cpu"))

    def look(point: Point) -> None:
        messages.print(
            f"step {point.step:>6,} of {run.trainer.steps:,}   loss {point.loss:.3f}   "
            f"{point.views_per_second:,.0f} views/s   held-out recall {point.recall:.3f}",
            highlight=False,
        )

    with progress("Training", run.trainer.steps, done=run.trainer.step, resumable=True) as advance:
        extractor = run.train(out, advance, look)
    screen.print(
        f"Wrote {out}: {extractor.dim}-d, held-out recall {run.curve[-1].recall:.3f}; record and curves in {folder}.",
        highlight=False,
    )
    raise typer.Exit(int(bool(squares.failures)))

"""What all training shares on the command line: what is checked before it, and how it is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli._screen import messages, progress, screen
from homing.errors import HomingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from homing.photo import Found
    from homing.training.curves import Point
    from homing.training.squares import Squares
    from homing.training.trainer import Trainer

Out = Annotated[Path, typer.Option(help="The file to write, ending in .safetensors.")]


def teach(
    photos: Sequence[Path],
    out: Path,
    size: int,
    about: Mapping[str, Any],
    trainer: Callable[[Squares, torch.device], Trainer],
) -> None:
    """Read the photos as squares of this size, teach a network, tell how it goes. Ends the command.

    `about` is what a run in the same folder must have been told as well.
    """
    from homing._extras import load_extra
    from homing.photo import gather
    from homing.training.run import alone_in, check_run

    if out.suffix != ".safetensors":
        raise HomingError(f"the network is written as .safetensors, got --out {out}")
    if out.exists():
        raise HomingError(f"{out} exists; choose another --out")
    load_extra("matplotlib", extra="train")
    folder = out.with_suffix(".run")
    found = gather(photos)
    if inside := next(
        (path for path in photos if path.is_dir() and folder.resolve().is_relative_to(path.resolve())), None
    ):
        raise HomingError(
            f"{out} lies among the photos in {inside}, and pictures of it would too; choose another --out"
        )
    check_run(folder, about)
    with alone_in(folder):
        _teach(found, out, folder, size, trainer)


def _teach(
    found: Sequence[Found], out: Path, folder: Path, size: int, trainer: Callable[[Squares, torch.device], Trainer]
) -> None:
    from homing._machine import default_device
    from homing.training.run import Run
    from homing.training.squares import squares_of

    with progress("Reading", len(found)) as advance:
        squares = squares_of([item.path for item in found], size, folder, advance)
    for failure in squares.failures:
        messages.print(f"failed    {failure}", style="red", soft_wrap=True, markup=False)
    run = Run(folder, trainer(squares, default_device()))
    measures = run.trainer.measures

    def look(point: Point) -> None:
        messages.print(
            f"step {point.step:>6,} of {run.trainer.steps:,}   loss {point.loss:.3f}   "
            f"{point.views_per_second:,.0f} views/s   held-out {measures} {point.score:.3f}",
            highlight=False,
        )

    with progress("Training", run.trainer.steps, done=run.trainer.step, resumable=True) as advance:
        score = run.train(out, advance, look)
    screen.print(f"Wrote {out}: held-out {measures} {score:.3f}; record and curves in {folder}.", highlight=False)
    raise typer.Exit(int(bool(squares.failures)))

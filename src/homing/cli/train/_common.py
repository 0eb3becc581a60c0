"""Checks before training, and progress during it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli._console import console, err_console
from homing.cli._progress import progress
from homing.errors import HomingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from homing.photo import LocalPhoto
    from homing.training.curves import CurvePoint
    from homing.training.photo_array import PhotoArray
    from homing.training.trainer import Trainer

Out = Annotated[Path, typer.Option(help="The file to write, ending in .safetensors.")]


def train(
    photos: Sequence[Path],
    out: Path,
    size: int,
    run_settings: Mapping[str, Any],
    trainer: Callable[[PhotoArray, torch.device], Trainer],
) -> None:
    """Read the photos as squares of this size and train a network. Ends the command.

    A run is resumed only if its settings equal `run_settings`.
    """
    from homing._extras import load_extra
    from homing.photo import find_photos
    from homing.training.run import check_run, lock_folder

    if out.suffix != ".safetensors":
        raise HomingError(f"--out must end in .safetensors, got {out}")
    if out.exists():
        raise HomingError(f"{out} exists; choose another --out")
    load_extra("matplotlib", extra="train")
    folder = out.with_suffix(".run")
    found = find_photos(photos)
    if inside := next(
        (path for path in photos if path.is_dir() and folder.resolve().is_relative_to(path.resolve())), None
    ):
        raise HomingError(f"{out} lies inside the folder of photos {inside}; choose another --out")
    check_run(folder, run_settings)
    with lock_folder(folder):
        _train(found, out, folder, size, trainer)


def _train(
    found: Sequence[LocalPhoto],
    out: Path,
    folder: Path,
    size: int,
    trainer: Callable[[PhotoArray, torch.device], Trainer],
) -> None:
    from homing._io.device import default_device
    from homing.training.photo_array import load_photo_array
    from homing.training.run import Run

    with progress("Reading", len(found)) as advance:
        squares = load_photo_array([item.path for item in found], size, folder, advance)
    for failure in squares.failures:
        err_console.print(f"failed    {failure}", style="red", soft_wrap=True, markup=False)
    run = Run(folder, trainer(squares, default_device()))
    metric = run.trainer.metric

    def on_checkpoint(point: CurvePoint) -> None:
        err_console.print(
            f"step {point.step:>6,} of {run.trainer.steps:,}   loss {point.loss:.3f}   "
            f"{point.views_per_second:,.0f} views/s   held-out {metric} {point.score:.3f}",
            highlight=False,
        )

    with progress("Training", run.trainer.steps, done=run.trainer.step, resumable=True) as advance:
        score = run.train(out, advance, on_checkpoint)
    console.print(f"Wrote {out}: held-out {metric} {score:.3f}; record and curves in {folder}.", highlight=False)
    raise typer.Exit(int(bool(squares.failures)))

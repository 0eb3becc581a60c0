"""homing train: train networks of your own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._app import App, PhotoPaths
from homing.cli._console import console, err_console, print_failure
from homing.cli._progress import progress
from homing.errors import HomingError
from homing.training.settings import DescriptorSettings
from homing.watermarks.settings import HiddenSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from homing.training.data import PhotoArray
    from homing.training.run import CurvePoint, Trainer

app = App(help="Train networks of your own.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="The file to write, ending in .safetensors.")]


@app.command()
def descriptor(photos: PhotoPaths, out: Out, settings: DescriptorSettings) -> None:
    """Train a network to match photos with their edited copies, as SSCD does.

    A folder FILE.run beside FILE.safetensors holds checkpoint, record and curves. Run the same command again to resume.

    Example:

        homing train descriptor photos/ --out mynet.safetensors
    """
    from homing.training.descriptors import DescriptorTrainer, initial_network

    initial_network(settings)  # fails before the photos are read
    _train(
        photos,
        out,
        settings.training_size,
        settings,
        lambda squares, device: DescriptorTrainer(squares, settings, device),
    )


@app.command()
def hidden(photos: PhotoPaths, out: Out, settings: HiddenSettings) -> None:
    """Train two networks to hide messages in photos and to read them from edited copies (HiDDeN).

    A folder FILE.run beside FILE.safetensors holds checkpoint, record and curves. Run the same command again to resume.

    Example:

        homing train hidden photos/ --out hidden.safetensors
    """
    from homing.watermarks.hidden_training import HiddenTrainer

    _train(photos, out, settings.size, settings, lambda squares, device: HiddenTrainer(squares, settings, device))


def _train(
    photos: Sequence[Path],
    out: Path,
    size: int,
    settings: DescriptorSettings | HiddenSettings,
    trainer: Callable[[PhotoArray, torch.device], Trainer],
) -> None:
    """Read the photos as squares of this size and train a network, or resume a run. Ends the command."""
    from homing._imports import load_extra
    from homing._tensors import default_device
    from homing.photo import find_photos
    from homing.training.data import load_photo_array
    from homing.training.run import Run, check_run, lock_folder

    load_extra("matplotlib", extra="train")
    folder = _run_folder(photos, out)
    found = find_photos(photos)
    check_run(folder, asdict(settings))
    with lock_folder(folder):
        with progress("Reading", len(found)) as advance:
            squares = load_photo_array([item.path for item in found], size, folder, advance)
        for failure in squares.failures:
            print_failure(failure)
        run = Run(folder, trainer(squares, default_device()))
        metric = run.trainer.metric

        def on_checkpoint(point: CurvePoint) -> None:
            err_console.print(
                f"step {point.step:>6,} of {run.trainer.steps:,}   loss {point.loss:.3f}   "
                f"{point.views_per_second:,.0f} views/s   held-out {metric} {point.score:.3f}"
            )

        with progress("Training", run.trainer.steps, done=run.trainer.step, resumable=True) as advance:
            score = run.train(out, advance, on_checkpoint)
    console.print(f"Wrote {out}: held-out {metric} {score:.3f}; record and curves in {folder}.")
    raise typer.Exit(int(bool(squares.failures)))


def _run_folder(photos: Sequence[Path], out: Path) -> Path:
    """The folder of the run beside the file to write. Refuses one that is among the photos."""
    if out.suffix != ".safetensors":
        raise HomingError(f"--out must end in .safetensors, got {out}")
    if out.exists():
        raise HomingError(f"{out} exists; choose another --out")
    folder = out.with_suffix(".run")
    for path in photos:
        if path.is_dir() and folder.resolve().is_relative_to(path.resolve()):
            raise HomingError(f"{out} lies inside the folder of photos {path}; choose another --out")
    return folder

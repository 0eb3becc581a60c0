"""homing extractors: list networks, and fetch the published weights of some; homing train: train networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

import homing
from homing._imports import load_extra
from homing.cli._app import App, PhotoPaths
from homing.cli._console import JsonFlag, console, err_console, print_failure, print_rows
from homing.cli._progress import download_progress, progress
from homing.errors import HomingError
from homing.training.settings import DescriptorSettings, HiddenSettings

if TYPE_CHECKING:
    import torch

    from homing.training.data import PhotoArray
    from homing.training.run import CurvePoint, Trainer

SettingsType = TypeVar("SettingsType", DescriptorSettings, HiddenSettings)

extractors_app = App()
train_app = App(help="Train networks of your own.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="The file to write, ending in .safetensors.")]


@extractors_app.callback(invoke_without_command=True)
def extractors(context: typer.Context, json: JsonFlag = False) -> None:
    """List the networks that compute descriptors of photos. Some must be fetched first."""
    if context.invoked_subcommand is not None:
        if json:
            raise HomingError("--json belongs to the list: homing extractors --json")
        return
    states = {name: "fetched" if there else "not fetched" for name, there in homing.extractors.fetched().items()}
    networks = homing.available_extractors().items()
    print_rows([{"name": name, "about": about, "weights": states.get(name, "")} for name, about in networks], json)


@extractors_app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The network.")],
    file: Annotated[
        Path | None,
        typer.Option(readable=False, help="Use this file, downloaded from the authors' address, and check it."),
    ] = None,
) -> None:
    """Download a network's weights from its authors' address into the cache folder, or resume a download.

    The cache folder is HOMING_CACHE, or else "homing" in your system's cache folder.

    Examples:

        homing extractors fetch sscd_disc_mixup

        homing extractors fetch sscd_disc_mixup --file sscd_disc_mixup.torchvision.pt
    """
    with download_progress(f"Fetching {name}") as report:
        path = homing.extractors.fetch(name, file=file, report=report)
    console.print(f"{name} is fetched: {path}", soft_wrap=True)


@train_app.command()
def descriptor(photos: PhotoPaths, out: Out, settings: DescriptorSettings) -> None:
    """Train a network to match photos with their edited copies, as SSCD does.

    A folder FILE.run beside FILE.safetensors holds checkpoint, record and curves. Run the same command again to resume.

    Example:

        homing train descriptor photos/ --out mynet.safetensors
    """
    from homing.training.descriptors import DescriptorTrainer, initial_network

    initial_network(settings)  # fails before the photos are read
    _train(photos, out, settings.training_size, settings, DescriptorTrainer)


@train_app.command()
def hidden(photos: PhotoPaths, out: Out, settings: HiddenSettings) -> None:
    """Train two networks to hide messages in photos and to read them from edited copies (HiDDeN).

    A folder FILE.run beside FILE.safetensors holds checkpoint, record and curves. Run the same command again to resume.

    Example:

        homing train hidden photos/ --out hidden.safetensors
    """
    from homing.watermarks.hidden import HiddenTrainer

    _train(photos, out, settings.size, settings, HiddenTrainer)


def _train(
    photos: Sequence[Path],
    out: Path,
    size: int,
    settings: SettingsType,
    trainer: Callable[[PhotoArray, SettingsType, torch.device], Trainer],
) -> None:
    """Read the photos as squares of this size and train a network, or resume a run. Ends the command."""
    from homing._tensors import default_device
    from homing.training.data import load_photo_array
    from homing.training.run import Run, check_run, lock_folder

    load_extra("matplotlib", extra="train")
    folder = _run_folder(photos, out)
    found = homing.photo.find_photos(photos)
    check_run(folder, asdict(settings))
    with lock_folder(folder):
        with progress("Reading", len(found)) as advance:
            squares = load_photo_array([item.path for item in found], size, folder, advance)
        for failure in squares.failures:
            print_failure(failure)
        run = Run(folder, trainer(squares, settings, default_device()))
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

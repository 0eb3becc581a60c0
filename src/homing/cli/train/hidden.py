"""homing train hidden: train the networks of a HiDDeN watermark, to compare activation with."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from homing.cli._console import PhotoPaths
from homing.cli.train._common import Out, train
from homing.watermarks.settings import HiddenSettings

DEFAULT = HiddenSettings()


def hidden(
    photos: PhotoPaths,
    out: Out,
    bits: Annotated[int, typer.Option(help="Bits of a message; the bench uses 20.")] = DEFAULT.bits,
    epochs: Annotated[float, typer.Option(help="Passes over the photos.")] = DEFAULT.epochs,
    batch: Annotated[int, typer.Option(help="Photos per batch.")] = DEFAULT.batch,
    size: Annotated[int, typer.Option(help="Side of the input of both networks, in pixels.")] = DEFAULT.size,
    width: Annotated[int, typer.Option(help="Channels of both networks.")] = DEFAULT.width,
    psnr: Annotated[float, typer.Option(help="Final PSNR of photos with messages, in dB.")] = DEFAULT.psnr,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = DEFAULT.lr,
    seed: Annotated[int, typer.Option(help="The random seed.")] = DEFAULT.seed,
) -> None:
    """Train two networks to hide messages in photos and to read them from edited copies (HiDDeN).

    A folder FILE.run beside FILE.safetensors holds checkpoint, record and curves. Run the same command again to resume.

    Example:

        homing train hidden photos/ --out hidden.safetensors
    """
    from homing.watermarks.hidden_training import HiddenTrainer

    settings = HiddenSettings(
        bits=bits, epochs=epochs, batch=batch, size=size, width=width, psnr=psnr, lr=lr, seed=seed
    )
    train(photos, out, size, asdict(settings), lambda squares, device: HiddenTrainer(squares, settings, device))

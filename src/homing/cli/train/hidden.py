"""homing train hidden: the networks of a watermark, to compare activation with."""

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
    bits: Annotated[int, typer.Option(help="Length of the messages; the bench compares 20.")] = DEFAULT.bits,
    epochs: Annotated[float, typer.Option(help="How often each photo is seen.")] = DEFAULT.epochs,
    batch: Annotated[int, typer.Option(help="Photos in a batch.")] = DEFAULT.batch,
    size: Annotated[int, typer.Option(help="Pixels a side that both networks look at.")] = DEFAULT.size,
    width: Annotated[int, typer.Option(help="Channels of both networks.")] = DEFAULT.width,
    psnr: Annotated[float, typer.Option(help="How quiet the messages are in the end, in dB.")] = DEFAULT.psnr,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = DEFAULT.lr,
    seed: Annotated[int, typer.Option(help="Another seed, other networks.")] = DEFAULT.seed,
) -> None:
    """Train two networks to hide messages in photos and to read them from edited copies (HiDDeN).

    An interrupted run goes on. Beside FILE.safetensors a folder FILE.run holds checkpoint, record and curves.

    Example:

        homing train hidden photos/ --out hidden.safetensors
    """
    from homing.watermarks.hidden_training import HiddenTrainer

    settings = HiddenSettings(
        bits=bits, epochs=epochs, batch=batch, size=size, width=width, psnr=psnr, lr=lr, seed=seed
    )
    train(photos, out, size, asdict(settings), lambda squares, device: HiddenTrainer(squares, settings, device))

"""homing train descriptor: a network of your own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from homing.cli._console import PhotoPaths
from homing.cli.train._common import Out, train
from homing.training.settings import DescriptorSettings

DEFAULT = DescriptorSettings()


def descriptor(
    photos: PhotoPaths,
    out: Out,
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
    weak_aug: Annotated[float, typer.Option(help="Share of the originals with one weak edit.")] = DEFAULT.weak_aug,
    whiten: Annotated[
        float,
        typer.Option(help="How much directions in which copies differ from originals are weakened; 0.5: all of it."),
    ] = DEFAULT.whiten,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = DEFAULT.lr,
    seed: Annotated[int, typer.Option(help="Another seed, another network.")] = DEFAULT.seed,
) -> None:
    """Train a network to know photos from their edited copies (the way of SSCD). An interrupted run goes on.

    Beside FILE.safetensors a folder FILE.run holds checkpoint, record and curves.

    Example:

        homing train descriptor photos/ --out mynet.safetensors
    """
    from homing.training.descriptors import DescriptorTrainer
    from homing.training.initialization import initial_network

    settings = DescriptorSettings(
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
        weak_aug=weak_aug,
        whiten=whiten,
        lr=lr,
        seed=seed,
    )
    initial_network(settings)  # says at once what would be said after the photos were read
    train(
        photos,
        out,
        training_size,
        asdict(settings),
        lambda squares, device: DescriptorTrainer(squares, settings, device),
    )

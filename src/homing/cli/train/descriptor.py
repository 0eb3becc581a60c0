"""homing train descriptor: train an extractor on your own photos."""

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
        str, typer.Option(help="Initial weights: imagenet-lite0, homing-1, timm:NAME or a FILE.safetensors.")
    ] = DEFAULT.init,
    epochs: Annotated[float, typer.Option(help="Passes over the photos.")] = DEFAULT.epochs,
    pairs: Annotated[int, typer.Option(help="Photos per batch, each with one edited copy.")] = DEFAULT.pairs,
    dim: Annotated[int, typer.Option(help="Dimension of the descriptors.")] = DEFAULT.dim,
    size: Annotated[int, typer.Option(help="Side of the network's input, in pixels.")] = DEFAULT.size,
    training_size: Annotated[
        int, typer.Option(help="Side of the input during training, in pixels.")
    ] = DEFAULT.training_size,
    temperature: Annotated[
        float, typer.Option(help="Temperature of the contrastive loss; lower values spread descriptors more evenly.")
    ] = DEFAULT.temperature,
    koleo: Annotated[
        float, typer.Option(help="Weight of the differential entropy (KoLeo); 30 in SSCD.")
    ] = DEFAULT.koleo,
    cells: Annotated[
        int,
        typer.Option(help="Cells of the cell loss, which keeps copies in the cell of their original; 0: no such loss."),
    ] = DEFAULT.cells,
    cell_weight: Annotated[float, typer.Option(help="Weight of the cell loss.")] = DEFAULT.cell_weight,
    mixup: Annotated[float, typer.Option(help="Share of copies that blend two photos.")] = DEFAULT.mixup,
    weak_aug: Annotated[float, typer.Option(help="Share of originals with one weak edit.")] = DEFAULT.weak_aug,
    whiten: Annotated[
        float,
        typer.Option(help="Whitening of the directions in which copies differ from originals; 0.5: full."),
    ] = DEFAULT.whiten,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = DEFAULT.lr,
    seed: Annotated[int, typer.Option(help="The random seed.")] = DEFAULT.seed,
) -> None:
    """Train a network to match photos with their edited copies, as SSCD does.

    A folder FILE.run beside FILE.safetensors holds checkpoint, record and curves. Run the same command again to resume.

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
    initial_network(settings)  # fails before the photos are read
    train(
        photos,
        out,
        training_size,
        asdict(settings),
        lambda squares, device: DescriptorTrainer(squares, settings, device),
    )

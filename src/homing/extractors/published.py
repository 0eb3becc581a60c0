"""Published networks: addresses of the weights, and extractors from their files."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from homing.errors import HomingError, UnknownNameError
from homing.extractors.base import Extractor, NetworkExtractor
from homing.extractors.download import Report, cache_path, fetch_file, is_cached, is_intact
from homing.extractors.registry import discover, register

ADDRESSES = {
    "sscd_disc_mixup": "https://dl.fbaipublicfiles.com/sscd-copy-detection/sscd_disc_mixup.torchvision.pt",
    "sscd_disc_advanced": "https://dl.fbaipublicfiles.com/sscd-copy-detection/sscd_disc_advanced.torchvision.pt",
    "sscd_disc_large": "https://dl.fbaipublicfiles.com/sscd-copy-detection/sscd_disc_large.classy.pt",
    "dino_r50": "https://dl.fbaipublicfiles.com/dino/dino_resnet50_pretrain/dino_resnet50_pretrain.pth",
    "dino_vits16": "https://dl.fbaipublicfiles.com/dino/dino_deitsmall16_pretrain/dino_deitsmall16_pretrain.pth",
    "isc_dt1": "https://github.com/lyakaap/ISC21-Descriptor-Track-1st/releases/download/v1.0.1/isc_ft_v107.pth.tar",
}
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALVES = (0.5, 0.5, 0.5)

Network = Callable[[dict[str, Any]], nn.Module]
_NETWORKS: dict[str, Network] = {}


def published(
    name: str,
    *,
    size: int,
    mean: tuple[float, float, float] = IMAGENET_MEAN,
    std: tuple[float, float, float] = IMAGENET_STD,
) -> Callable[[Network], Network]:
    """Register the extractor of this name, built by `network` from the authors' checkpoint."""

    def decorate(network: Network) -> Network:
        def build(device: torch.device | str | None = None) -> Extractor:
            loaded = _network(name, _fetched_file(name))
            return NetworkExtractor(loaded, name=name, size=size, mean=mean, std=std, device=device)

        build.__doc__ = network.__doc__
        register(name)(build)
        _NETWORKS[name] = network
        return network

    return decorate


def fetched() -> dict[str, bool]:
    """The names of all published networks, and whether their weights have been fetched."""
    return {name: is_cached(address) for name, address in ADDRESSES.items()}


def fetch(name: str, *, file: Path | None = None, report: Report = lambda *_: None) -> Path:
    """Download a network's weights into the cache folder, or copy them from `file`; resumes partial downloads.

    `report` gets the bytes so far and in total.
    """
    if name not in ADDRESSES:
        raise UnknownNameError("network to fetch", name, ADDRESSES)
    discover()
    return fetch_file(ADDRESSES[name], partial(_network, name), file=file, report=report)


def _fetched_file(name: str) -> Path:
    path = cache_path(ADDRESSES[name])
    if not path.is_file():
        raise HomingError(f"the weights of {name} have not been fetched; run: homing extractors fetch {name}")
    if not is_intact(ADDRESSES[name]):
        raise HomingError(f"{path} is damaged; run: homing extractors fetch {name}")
    return path


def _network(name: str, path: Path) -> nn.Module:
    try:
        network = _NETWORKS[name](_read_checkpoint(path))
        if not all(weights.isfinite().all() for weights in network.state_dict().values()):
            raise ValueError("weights that are infinite or NaN")
        return network
    except (pickle.UnpicklingError, AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise HomingError(f"the file does not hold the weights of {name}, published at {ADDRESSES[name]}") from error


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        # PyTorch does not verify checksums.
        if zipfile.is_zipfile(path) and (damaged := zipfile.ZipFile(path).testzip()):
            raise zipfile.BadZipFile(damaged)
        # Some checkpoints hold the settings of training as a Namespace; nothing else is unpickled.
        with torch.serialization.safe_globals([Namespace]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'torch.load' received")  # raised for TorchScript, which is refused below
            checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # PyTorch raises many kinds of errors for damaged files
        raise pickle.UnpicklingError(str(error)) from error
    return checkpoint

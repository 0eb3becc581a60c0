"""Networks whose weights their authors publish: fetched into the cache folder, then loaded from there."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from homing.errors import HomingError, UnknownNameError
from homing.extractors.base import IMAGENET_MEAN, IMAGENET_STD, Color, Extractor, NetworkExtractor
from homing.extractors.download import Report, cache_path, fetch_file, is_cached, is_intact
from homing.extractors.registry import discover, register

Network = Callable[[dict[str, Any]], nn.Module]


@dataclass(frozen=True)
class Published:
    """The address of a network's weights, and the function that makes the network from what the file there holds."""

    address: str
    network: Network


_PUBLISHED: dict[str, Published] = {}


def published(
    name: str, address: str, *, size: int, mean: Color = IMAGENET_MEAN, std: Color = IMAGENET_STD
) -> Callable[[Network], Network]:
    """Register the extractor of this name, built by `network` from the authors' checkpoint at the address."""

    def decorate(network: Network) -> Network:
        def build(device: torch.device | str | None = None) -> Extractor:
            loaded = _load(name, _fetched_file(name))
            return NetworkExtractor(loaded, name=name, size=size, mean=mean, std=std, device=device)

        build.__doc__ = network.__doc__
        register(name)(build)
        _PUBLISHED[name] = Published(address, network)
        return network

    return decorate


def fetched() -> dict[str, bool]:
    """The names of all published networks, and whether their weights have been fetched."""
    discover()
    return {name: is_cached(each.address) for name, each in _PUBLISHED.items()}


def fetch(name: str, *, file: Path | None = None, report: Report = lambda *_: None) -> Path:
    """Download a network's weights into the cache folder, or copy them from `file`; resumes partial downloads.

    `report` gets the bytes so far and in total.
    """
    discover()
    if name not in _PUBLISHED:
        raise UnknownNameError("network to fetch", name, _PUBLISHED)
    return fetch_file(_PUBLISHED[name].address, partial(_load, name), file=file, report=report)


def _fetched_file(name: str) -> Path:
    path = cache_path(_PUBLISHED[name].address)
    if not path.is_file():
        raise HomingError(f"the weights of {name} have not been fetched; run: homing extractors fetch {name}")
    if not is_intact(_PUBLISHED[name].address):
        raise HomingError(f"{path} is damaged; run: homing extractors fetch {name}")
    return path


def _load(name: str, path: Path) -> nn.Module:
    address = _PUBLISHED[name].address
    try:
        network = _PUBLISHED[name].network(_read_checkpoint(path))
        if not all(weights.isfinite().all() for weights in network.state_dict().values()):
            raise ValueError("weights that are infinite or NaN")
        return network
    except (pickle.UnpicklingError, AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise HomingError(f"the file does not hold the weights of {name}, published at {address}") from error


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

"""Networks written by `homing train descriptor`: one file with weights and config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors, save as save_safetensors
from torch import Tensor, nn

from homing._io.files import read_safetensors_metadata, report_write_errors, write_atomically
from homing.errors import HomingError
from homing.extractors.base import Color, Extractor, NetworkExtractor

GEM_POWER = 3.0
_METADATA_KEY = "homing.extractor"


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Architecture and preprocessing of a descriptor network."""

    trunk: str  # the name of a convolutional timm model
    dim: int
    size: int
    mean: Color
    std: Color


class DescriptorNetwork(nn.Module):
    """A convolutional trunk, generalized-mean (GeM) pooling, and a linear projection."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.trunk = timm.create_model(config.trunk, pretrained=False, num_classes=0, global_pool="")
        self.head = nn.Linear(self.trunk.num_features, config.dim)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) normalized pixels to (B, dim), not yet of unit norm."""
        maps = self.trunk(pixels).float().clamp(min=1e-6)  # cubes need single precision
        pooled: Tensor = maps.pow(GEM_POWER).mean(dim=(2, 3)).pow(1 / GEM_POWER)
        projected: Tensor = self.head(pooled)
        return projected


def trained_network(path: str, device: torch.device | str | None = None) -> Extractor:
    """A network of your own, written by homing train descriptor."""
    # Codebooks store the name, so it must be valid in any working directory.
    return as_extractor(*read_network(path), name=str(Path(path).absolute()), device=device)


def as_extractor(
    network: DescriptorNetwork, config: NetworkConfig, *, name: str, device: torch.device | str | None = None
) -> Extractor:
    """The network as an extractor."""
    return NetworkExtractor(network, name=name, size=config.size, mean=config.mean, std=config.std, device=device)


def read_network(path: str) -> tuple[DescriptorNetwork, NetworkConfig]:
    """Read network and config from a file."""
    try:
        return network_from_bytes(Path(path).read_bytes(), origin=path)
    except OSError as error:
        raise HomingError(f"cannot read the network {path}: {error.strerror}") from error


def network_from_bytes(data: bytes, *, origin: str) -> tuple[DescriptorNetwork, NetworkConfig]:
    """Network and config in the bytes of a file; `origin` names them in messages."""
    try:
        about = read_safetensors_metadata(data, _METADATA_KEY)
        config = NetworkConfig(**{**about, "mean": tuple(about["mean"]), "std": tuple(about["std"])})
        network = DescriptorNetwork(config)
        network.load_state_dict(load_safetensors(data))  # stored in half precision, copied into single
    except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise HomingError(f"{origin} was not written by homing train descriptor, or is damaged") from error
    return network, config


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are infinite or NaN."""
    if not all(value.isfinite().all() for value in weights.values()):
        raise HomingError("the network's weights are infinite or NaN; try a lower --lr")


def write_network(network: nn.Module, config: Any, path: Path, *, kind: str = _METADATA_KEY) -> None:
    """Write a network and its config, a dataclass: weights in half precision, biases and norms in single.

    `kind` is the metadata key of the config.
    """
    half = {key: value.half() if value.ndim > 1 else value for key, value in network.state_dict().items()}
    check_finite(half)
    metadata = {kind: json.dumps(asdict(config), sort_keys=True)}
    with report_write_errors(path):
        write_atomically(path, save_safetensors({key: value.contiguous() for key, value in half.items()}, metadata))

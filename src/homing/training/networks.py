"""The network that training starts from, and the whitening of the trained one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import timm
import torch
from torch import Tensor, nn

from homing.errors import HomingError, UnknownNameError
from homing.extractors import imagenet_lite0
from homing.extractors.descriptor_network import DescriptorNetwork, NetworkConfig, read_network
from homing.extractors.homing_1 import bundled_network
from homing.extractors.timm_models import pretrained
from homing.training.settings import DescriptorSettings

RIDGE = 0.02  # of the mean variance; limits the scale of directions with little variance


def initial_network(settings: DescriptorSettings) -> tuple[DescriptorNetwork, NetworkConfig]:
    """The network that `settings.init` names, with a projection to the wanted dimension."""
    init = settings.init
    if init == "homing-1" or init.endswith(".safetensors"):
        network, config = bundled_network() if init == "homing-1" else read_network(init)
        if config.dim != settings.dim:
            raise HomingError(f"{init} gives {config.dim}-d descriptors, got --dim {settings.dim}; leave them equal")
        return network, replace(config, size=settings.size)
    if init == "imagenet-lite0":
        mean, std = imagenet_lite0.MEAN, imagenet_lite0.STD
        return _network_with_trunk(imagenet_lite0.TRUNK, imagenet_lite0.trunk_weights(), mean, std, settings)
    if init.startswith("timm:"):
        name = init.removeprefix("timm:")
        model = pretrained(name)
        data_config = timm.data.resolve_model_data_config(model)
        return _network_with_trunk(name, model.state_dict(), data_config["mean"], data_config["std"], settings)
    raise UnknownNameError(
        "network to start from", init, ["homing-1", "imagenet-lite0", "timm:NAME", "FILE.safetensors"]
    )


def _network_with_trunk(
    trunk: str,
    weights: Mapping[str, Tensor],
    mean: tuple[float, float, float],
    std: tuple[float, float, float],
    settings: DescriptorSettings,
) -> tuple[DescriptorNetwork, NetworkConfig]:
    config = NetworkConfig(trunk=trunk, dim=settings.dim, size=settings.size, mean=mean, std=std)
    network = DescriptorNetwork(config)
    _require_feature_maps(network, trunk)
    network.trunk.load_state_dict(weights)
    # An orthogonal projection nearly keeps the distances of pooled features.
    torch.nn.init.orthogonal_(network.head.weight)
    torch.nn.init.zeros_(network.head.bias)
    return network, config


@torch.no_grad()
def _require_feature_maps(network: DescriptorNetwork, trunk: str) -> None:
    """Refuse a trunk whose output cannot be pooled to the features the projection expects."""
    size = timm.data.resolve_model_data_config(network.trunk)["input_size"]
    maps = network.trunk.eval()(torch.zeros(1, *size))
    if maps.ndim != 4 or maps.shape[1] != network.trunk.num_features:
        raise HomingError(f"'{trunk}' gives no feature maps to pool; choose a convolutional network such as resnet50")


@torch.no_grad()
def whiten(head: nn.Linear, originals: Tensor, copies: Tensor, power: float) -> None:
    """Fold whitening into the projection that gave these (N, D) pairs, of any length. A power of 0.5 is full whitening.

    Descriptors are compared at unit norm, so differences are measured there. The originals are also centered.
    """
    differences = nn.functional.normalize(copies, dim=1) - nn.functional.normalize(originals, dim=1)
    spread, directions = torch.linalg.eigh((differences.T @ differences).double() / len(differences))
    weights = (spread + RIDGE * spread.mean()).clamp_min(1e-12) ** -power
    change = (directions * (weights / weights.mean()) @ directions.T).to(head.weight)
    head.weight.copy_(change @ head.weight)
    head.bias.copy_(change @ (head.bias - originals.mean(dim=0)))

"""Any model of timm by its name, pooled features as the descriptor."""

from __future__ import annotations

from difflib import get_close_matches

import timm
import torch
from torch import nn

from homing.errors import HomingError, UnknownNameError
from homing.extractors.base import Extractor, NetworkExtractor


def timm_model(name: str, device: torch.device | str | None = None) -> Extractor:
    """Any timm model, such as timm:vit_small_patch16_dinov3.lvd1689m; weights are downloaded once by timm."""
    network = pretrained(name)
    settings = timm.data.resolve_model_data_config(network)
    return NetworkExtractor(
        network,
        name=f"timm:{name}",
        size=settings["input_size"][-1],
        mean=settings["mean"],
        std=settings["std"],
        device=device,
    )


def pretrained(name: str) -> nn.Module:
    """The network of this name with its published weights, without its classifier."""
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        near = get_close_matches(architecture, timm.list_models(), n=5, cutoff=0)
        raise UnknownNameError("timm model", architecture, [*near, "… (timm.list_models() has all)"])
    if tag and name not in (tagged := timm.list_pretrained(f"{architecture}.*")):
        raise UnknownNameError("timm model", name, tagged or [architecture])
    try:
        network: nn.Module = timm.create_model(name, pretrained=True, num_classes=0)
    except (OSError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise HomingError(
            f"cannot get the weights of timm model '{name}': {reason}; check the network and try again"
        ) from error
    return network

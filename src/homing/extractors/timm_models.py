"""timm models by name; the pooled features are the descriptor."""

from __future__ import annotations

from difflib import get_close_matches

import timm
import torch
from huggingface_hub import constants, model_info, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
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
        _require_weights(timm.get_pretrained_cfg(name).hf_hub_id)
        network: nn.Module = timm.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:  # network errors differ between versions of huggingface_hub
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise HomingError(
            f"cannot get the weights of timm model '{name}': {reason}; check the connection, or copy the folder "
            f"{constants.HF_HUB_CACHE} from a machine where this command has run"
        ) from error
    return network


def _require_weights(repository: str | None) -> None:
    """Raise an error at once if missing weights cannot be downloaded; timm would retry for a minute."""
    if not repository:  # a few models are hosted elsewhere
        return
    try:
        snapshot_download(repository, local_files_only=True)
    except LocalEntryNotFoundError:
        model_info(repository, timeout=10)

"""Networks of others: timm models by name, whose pooled features are the descriptor, and TorchScript files."""

from __future__ import annotations

import math
import warnings
from difflib import get_close_matches
from pathlib import Path

import timm
import torch
from huggingface_hub import constants, model_info, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import nn

from homing.errors import HomingError, UnknownNameError
from homing.extractors.base import Extractor, NetworkExtractor

TORCHSCRIPT_SIZE = 288  # input size of the paper's networks


def timm_model(name: str, device: torch.device | str | None = None) -> Extractor:
    """Any timm model, such as timm:vit_small_patch16_dinov3.lvd1689m; weights are downloaded once by timm."""
    network = pretrained(name.removeprefix("timm:"))
    config = timm.data.resolve_model_data_config(network)
    size = config["input_size"][-1]
    return NetworkExtractor(network, name=name, size=size, mean=config["mean"], std=config["std"], device=device)


def pretrained(name: str) -> nn.Module:
    """The timm model of this name with its published weights, without its classifier."""
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


def torchscript(path: str, device: torch.device | str | None = None) -> Extractor:
    """Any TorchScript file; input of 288 px with ImageNet normalization."""
    path = str(Path(path).absolute())  # codebooks store the name, so it must be valid in any working directory
    if not Path(path).is_file():
        raise HomingError(f"no such TorchScript file: {path}")
    try:
        with warnings.catch_warnings():
            # TorchScript is deprecated, but published networks use it.
            warnings.filterwarnings("ignore", "`torch.jit")
            network = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise HomingError(
            f"{path} is not a TorchScript file; load published weights with: homing extractors fetch NAME --file {path}"
        ) from error
    try:
        extractor = NetworkExtractor(network, name=path, size=TORCHSCRIPT_SIZE, device=device)
        _try(extractor)
    except Exception as error:  # a script can raise anything
        reason = str(error).strip().split("\n")[-1]
        raise HomingError(
            f"{path} does not give every photo of {TORCHSCRIPT_SIZE} px a descriptor and a gradient: {reason}"
        ) from error
    return extractor


@torch.enable_grad()
def _try(extractor: Extractor) -> None:
    """Raise an error if two photos do not give two descriptors, or no gradient reaches them."""
    shape = (2, 3, extractor.size, extractor.size)
    images = torch.linspace(0, 1, math.prod(shape), device=extractor.device).view(shape).requires_grad_()
    descriptors = extractor(images)
    if len(descriptors) != 2:
        raise ValueError(f"two photos gave {len(descriptors)}")
    if not descriptors.isfinite().all():
        raise ValueError("its descriptors are not numbers")
    torch.autograd.backward(descriptors.sum())
    if images.grad is None or not images.grad.any():
        raise ValueError("its gradient does not reach the pixels")

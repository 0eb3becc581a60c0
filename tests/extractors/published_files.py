"""Files in the layouts of published networks with random weights, and independent versions of the networks."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import timm
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

IMAGENET = (torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225]))
HALF = (torch.full((3,), 0.5), torch.full((3,), 0.5))


@dataclass(frozen=True)
class Published:
    state: dict[str, Any]
    network: Callable[[Tensor], Tensor]
    dim: int
    size: int
    normalization: tuple[Tensor, Tensor] = IMAGENET

    def __call__(self, images: Tensor) -> Tensor:
        mean, std = (each[:, None, None] for each in self.normalization)
        return F.normalize(self.network((images - mean) / std))


class GeM(nn.Module):
    def forward(self, maps: Tensor) -> Tensor:
        return (maps.clamp(min=1e-6) ** 3).mean(dim=(2, 3), keepdim=True) ** (1 / 3)


def with_batch_statistics(network: nn.Module) -> nn.Module:
    """The network with the batch-norm statistics of one batch, so that descriptors of photos differ."""
    norms = [part for part in network.modules() if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.momentum = 1.0
    contrast, color = torch.rand(8, 3, 1, 1), torch.randn(8, 3, 1, 1)
    with torch.no_grad():
        network.train()(contrast * torch.randn(8, 3, 64, 64) + color)
    for norm in norms:
        norm.running_var *= 1.2  # a small batch underestimates it, and rounding errors would grow from layer to layer
    return network.eval()


def sscd() -> Published:
    network = torchvision.models.resnet50(num_classes=512)
    network.avgpool = GeM()
    with_batch_statistics(network)
    return Published({f"backbone.{key}": value for key, value in network.state_dict().items()}, network, 512, 288)


def sscd_large() -> Published:
    """Torchvision's ResNeXt with the parameter names of Classy Vision, as published."""
    network = torchvision.models.ResNet(
        torchvision.models.resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4, num_classes=1024
    )
    network.avgpool = GeM()
    with_batch_statistics(network)
    return Published({_classy(key): value for key, value in network.state_dict().items()}, network, 1024, 288)


def _classy(key: str) -> str:
    within = {"conv1": "convolutional_block.0", "bn1": "convolutional_block.1", "conv2": "convolutional_block.3"}
    within |= {
        "bn2": "convolutional_block.4",
        "conv3": "convolutional_block.6",
        "bn3": "bn",
        "downsample": "downsample",
    }
    if found := re.fullmatch(r"layer(\d)\.(\d+)\.(\w+)\.(.*)", key):
        stage, block = int(found[1]) - 1, found[2]
        return f"backbone.blocks.{stage}.block{stage}-{block}.{within[found[3]]}.{found[4]}"
    part, _, rest = key.partition(".")
    start = {"conv1": "backbone.initial_block._module.0", "bn1": "backbone.initial_block._module.1"}
    return f"{(start | {'fc': 'embeddings.1'})[part]}.{rest}"


def dino_r50() -> Published:
    network = torchvision.models.resnet50()
    network.fc = nn.Identity()
    with_batch_statistics(network)
    return Published(network.state_dict(), network, 2048, 224)


def dino_vits16() -> Published:
    state = timm.create_model("vit_small_patch16_224", num_classes=0).state_dict()
    torch.nn.init.normal_(state["pos_embed"], std=0.5)
    return Published(state, lambda pixels: class_token(state, pixels), 384, 224)


def class_token(state: dict[str, Tensor], pixels: Tensor) -> Tensor:
    """A vision transformer with twelve layers and six heads, computed from its weights."""

    def linear(tokens: Tensor, name: str) -> Tensor:
        return tokens @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(tokens: Tensor, name: str) -> Tensor:
        return F.layer_norm(tokens, (384,), state[f"{name}.weight"], state[f"{name}.bias"], eps=1e-6)

    patches = F.conv2d(pixels, state["patch_embed.proj.weight"], state["patch_embed.proj.bias"], stride=16)
    tokens = torch.cat([state["cls_token"].expand(len(pixels), -1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
    tokens = tokens + state["pos_embed"]
    for layer in range(12):
        name = f"blocks.{layer}"
        heads = linear(norm(tokens, f"{name}.norm1"), f"{name}.attn.qkv").unflatten(2, (3, 6, 64))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        weights = (queries @ keys.transpose(2, 3) / 8).softmax(dim=3)
        tokens = tokens + linear((weights @ values).transpose(1, 2).flatten(2), f"{name}.attn.proj")
        hidden = F.gelu(linear(norm(tokens, f"{name}.norm2"), f"{name}.mlp.fc1"))
        tokens = tokens + linear(hidden, f"{name}.mlp.fc2")
    return norm(tokens, "norm")[:, 0]


class Isc(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = timm.create_model("tf_efficientnetv2_m", features_only=True)
        self.fc = nn.Linear(512, 256, bias=False)
        self.bn = nn.BatchNorm1d(256)

    def forward(self, pixels: Tensor) -> Tensor:
        maps = self.backbone(pixels)[-1].clamp(min=1e-6)
        return self.bn(self.fc(F.adaptive_avg_pool2d(maps, 1).flatten(1)))


def isc() -> Published:
    network = with_batch_statistics(Isc())
    weights = {f"module.{key}": value for key, value in network.state_dict().items()}
    state = {"epoch": 10, "arch": "tf_efficientnetv2_m_in21ft1k", "args": Namespace(input_size=512, lr=0.5)}
    return Published({**state, "state_dict": weights, "optimizer": {"state": {}}}, network, 256, 512, HALF)


# sscd_disc_advanced differs from sscd_disc_mixup only in its weights.
PUBLISHED = {
    "sscd_disc_mixup": sscd,
    "sscd_disc_large": sscd_large,
    "dino_r50": dino_r50,
    "dino_vits16": dino_vits16,
    "isc_dt1": isc,
}

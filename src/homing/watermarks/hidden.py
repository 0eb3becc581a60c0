"""HiDDeN (Zhu et al., 2018): one small network hides a message in a photo, another reads it from copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn

from homing._io.files import read_safetensors_metadata
from homing.errors import HomingError
from homing.extractors import Extractor, NetworkExtractor
from homing.perception import Budget
from homing.perception.budgets import is_grayscale
from homing.perception.quality import rms

BUNDLED = "data/hidden-1.safetensors"
KIND = "homing.hidden"
_ENCODER_BLOCKS, _DECODER_BLOCKS = 4, 8
_HALVES = (0.5, 0.5, 0.5)  # the networks expect pixels in [-1, 1]


@dataclass(frozen=True, kw_only=True)
class HiddenConfig:
    """The configuration of both networks."""

    bits: int
    size: int  # input size of both networks in pixels
    width: int  # channels


class HiddenNetwork(nn.Module):
    """Encoder and decoder nearly as published: 3 × 3 convolutions, each with batch norm and ReLU.

    The decoder's last layer takes the normalized means of all channels, instead of one channel per bit. The means
    differ much between photos and little between messages, which delayed learning.
    """

    def __init__(self, config: HiddenConfig) -> None:
        super().__init__()
        width, bits = config.width, config.bits
        self.features = nn.Sequential(_block(3, width), *(_block(width, width) for _ in range(_ENCODER_BLOCKS - 1)))
        self.hide = nn.Sequential(_block(width + bits + 3, width), nn.Conv2d(width, 3, 1))
        self.decoder = nn.Sequential(
            _block(3, width),
            *(_block(width, width) for _ in range(_DECODER_BLOCKS - 1)),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.BatchNorm1d(width),
            nn.Linear(width, bits),
        )

    def encode(self, images: Tensor, messages: Tensor) -> Tensor:
        """The pattern (B, 3, S, S) that hides (B, bits) messages in images in [0, 1], not yet scaled."""
        pixels = 2 * images - 1
        message_planes = (2.0 * messages - 1)[:, :, None, None].expand(-1, -1, *images.shape[2:])
        pattern: Tensor = self.hide(torch.cat([self.features(pixels), message_planes, pixels], dim=1)).float()
        return pattern / rms(pattern)[:, None, None, None].clamp_min(1e-6)

    def decode(self, images: Tensor) -> Tensor:
        """One number for each bit, (B, bits), of images in [0, 1]."""
        scores: Tensor = self.decoder(2 * images - 1).float()
        return scores


class HiddenWatermark:
    """Watermarks by two networks trained together. The budget shapes the change, not a loss."""

    name = "hidden"

    def __init__(self, network: HiddenNetwork, config: HiddenConfig, device: torch.device | str | None = None) -> None:
        self.decoder: Extractor = NetworkExtractor(
            network.decoder, name=self.name, size=config.size, mean=_HALVES, std=_HALVES, device=device
        )
        self._network = network.eval().to(self.decoder.device)
        self.fingerprint = self.decoder.fingerprint  # encoder and decoder were trained together

    @classmethod
    def load(cls, path: Path | None = None, device: torch.device | str | None = None) -> HiddenWatermark:
        """The networks that `homing train hidden` wrote into a file; by default those inside the package."""
        return cls(*read_hidden(path), device=device)

    @torch.no_grad()
    def changes(self, images: Sequence[Tensor], messages: Tensor, budget: Budget) -> list[Tensor]:
        """The pattern of each image, resized to it and scaled by the budget's pixel bounds."""
        squares = torch.stack([self.decoder.resize(image) for image in images]).to(self.decoder.device)
        patterns = self._network.encode(squares, messages.to(self.decoder.device)).cpu()
        return [_shaped(pattern, image, budget) for pattern, image in zip(patterns, images, strict=True)]


def read_hidden(path: Path | None) -> tuple[HiddenNetwork, HiddenConfig]:
    """The networks in a file, or those inside the package, and their config."""
    entry = files("homing.watermarks").joinpath(BUNDLED) if path is None else path
    if not entry.is_file():
        raise HomingError(f"no such file: {entry}; homing train hidden PHOTOS --out FILE.safetensors writes one")
    data = entry.read_bytes()
    try:
        config = HiddenConfig(**read_safetensors_metadata(data, KIND))
        network = HiddenNetwork(config)
        network.load_state_dict(load_safetensors(data))  # stored in half precision, copied into single
    except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise HomingError(f"{entry} was not written by homing train hidden, or is damaged") from error
    return network, config


def _shaped(pattern: Tensor, image: Tensor, budget: Budget) -> Tensor:
    whole = F.interpolate(pattern[None], image.shape[1:], mode="bilinear", align_corners=False)[0]
    if is_grayscale(image[None]):  # a gray image stays gray
        whole = whole.mean(dim=0, keepdim=True)
    change = budget.pixel_bound(image) * whole
    if budget.psnr is None:
        return change
    # As strong as in training: the search for a file's PSNR converges from nearby only.
    return change * (10 ** (-budget.psnr / 20) / rms(change).clamp_min(1e-8))


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )

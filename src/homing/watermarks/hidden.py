"""HiDDeN (Zhu et al., 2018): one small network hides a message in a photo, another reads it from copies.

Both are trained together, on edited copies at the PSNR of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn

from homing._io.files import read_safetensors_metadata
from homing._tensors import compile_on_gpu, to_device
from homing.edits import Views
from homing.errors import HomingError
from homing.extractors import Extractor, NetworkExtractor
from homing.extractors.descriptor_network import write_network
from homing.perception import JND, Budget, jnd_map
from homing.perception.budgets import is_grayscale
from homing.perception.quality import rms
from homing.training.data import EDITING, Batches, PhotoArray
from homing.training.run import SavedNetwork, Trainer, half_precision
from homing.training.settings import HiddenSettings
from homing.watermarks.base import EDITS, random_edit

BUNDLED = "data/hidden-1.safetensors"
KIND = "homing.hidden"
_ENCODER_BLOCKS, _DECODER_BLOCKS = 4, 8
_HALVES = (0.5, 0.5, 0.5)  # the networks expect pixels in [-1, 1]
# Training starts with strong patterns, at a low PSNR, and without edits. The difficulty rises with each step whose bit
# accuracy is high enough, and in any case between two points of the training.
START_PSNR = 12.0  # dB
MIN_BIT_ACCURACY = 0.8  # of the bits
FASTEST_RAMP = 0.25  # share of the steps, at the fastest, from the easiest to full difficulty
LATEST_RAMP = 0.3, 0.6  # shares of the steps


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


class HiddenTrainer(Trainer):
    """The trainer of HiDDeN's networks."""

    metric = "bit accuracy"
    network: HiddenNetwork

    def __init__(self, photos: PhotoArray, settings: HiddenSettings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, device
        self.config = HiddenConfig(bits=settings.bits, size=settings.size, width=settings.width)
        network = HiddenNetwork(self.config).to(device).to(memory_format=torch.channels_last)
        super().__init__(
            network,
            Batches(photos, settings.batch, settings.seed, device),
            torch.optim.Adam(network.parameters(), lr=settings.lr),
            settings,
            edits=EDITS,
        )
        self._encode, self._decode = (compile_on_gpu(part, device) for part in (network.encode, network.decode))
        self._difficulty = torch.zeros((), device=device)  # 1 is full difficulty; stays on the device

    def loss(self, pixels: np.ndarray) -> Tensor:
        """The cross-entropy of bits that are read from copies, which get more difficult with the bit accuracy."""
        rng = self.batches.rng(EDITING, self.step)
        with torch.no_grad():
            originals = self.batches.originals(pixels, rng)
            messages = self._messages(len(originals), rng)
        with half_precision(self.device):
            patterns = self._encode(originals.pixels, messages)
        psnr = START_PSNR + (self.settings.psnr - START_PSNR) * self._difficulty
        marked = Views(_at_psnr(originals.pixels, patterns, psnr), originals.ratio)
        chosen = to_device(rng.random((len(marked), 1, 1, 1)), self.device) < self._difficulty
        copies = torch.where(chosen, random_edit(marked, rng).pixels, marked.pixels)
        with half_precision(self.device):
            scores = self._decode(copies)
        self._update_difficulty(((scores.detach() > 0) == messages).float().mean())
        return F.binary_cross_entropy_with_logits(scores, messages.float())

    def score(self) -> float:
        """Bit accuracy on edited copies of held-out photos."""
        return self._accuracy(self.network)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {**super().state(), "difficulty": self._difficulty}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        super().restore(state)
        self._difficulty = state["difficulty"]

    def write(self, path: Path) -> SavedNetwork:
        """Write both networks to one file."""
        write_network(self.network, self.config, path, kind=KIND)
        network, _ = read_hidden(path)
        return SavedNetwork(self._accuracy(network.to(self.device)), {"photos_per_batch": self.batches.count})

    def _update_difficulty(self, bit_accuracy: Tensor) -> None:
        """Update the difficulty of the next step from the bit accuracy of this one."""
        begins, ends = LATEST_RAMP
        due = max(0.0, ((self.step + 1) / self.steps - begins) / (ends - begins))
        raised = self._difficulty + (bit_accuracy > MIN_BIT_ACCURACY) / (FASTEST_RAMP * self.steps)
        self._difficulty = raised.clamp(min=due).clamp(max=1)

    @torch.no_grad()
    def _accuracy(self, network: HiddenNetwork) -> float:
        network.eval()
        right = []
        for originals, rng in self.batches.held_out():
            messages = self._messages(len(originals), rng)
            patterns = network.encode(originals.pixels, messages)
            marked = _at_psnr(originals.pixels, patterns, self.settings.psnr)
            copies = random_edit(Views(marked, originals.ratio), rng).pixels
            right.append(((network.decode(copies) > 0) == messages).float())
        self.network.train()
        return float(torch.cat(right).mean())

    def _messages(self, count: int, rng: np.random.Generator) -> Tensor:
        return to_device(rng.random((count, self.settings.bits)) < 0.5, self.device)


def _at_psnr(images: Tensor, patterns: Tensor, psnr: Tensor | float) -> Tensor:
    """Images (B, 3, S, S) with unscaled patterns, shaped by the budget of a release and scaled to a PSNR."""
    with torch.no_grad():
        pixel_bounds = images.new_tensor(JND.channels)[:, None, None] * jnd_map(images)
    changes = pixel_bounds * patterns
    sizes = rms(changes)[:, None, None, None].clamp_min(1e-8)
    return (images + changes * (10 ** (-psnr / 20) / sizes)).clamp(0, 1)

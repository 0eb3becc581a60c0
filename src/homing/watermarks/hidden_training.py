"""Train HiDDeN's encoder and decoder on edited copies at the PSNR of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._tensors import compile_on_gpu, to_device
from homing.edits import Views
from homing.extractors.descriptor_network import write_network
from homing.perception import JND, jnd_map
from homing.perception.quality import rms
from homing.training.data import EDITING, Batches, PhotoArray
from homing.training.run import SavedNetwork, Trainer, half_precision
from homing.watermarks.base import EDITS, random_edit
from homing.watermarks.hidden import KIND, HiddenConfig, HiddenNetwork, read_hidden
from homing.watermarks.settings import START_PSNR, HiddenSettings

# Training starts at a low PSNR and without edits. The difficulty rises with each step whose bit accuracy is high
# enough, and in any case between two points of the training.
MIN_BIT_ACCURACY = 0.8  # of the bits
FASTEST_RAMP = 0.25  # share of the steps, at the fastest, from the easiest to full difficulty
LATEST_RAMP = 0.3, 0.6  # shares of the steps


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
            edits={name: list(span) if span else None for name, span in EDITS.items()},
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

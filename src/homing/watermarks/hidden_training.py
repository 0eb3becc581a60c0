"""Train HiDDeN's encoder and decoder on edited copies at the PSNR of a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._io.device import compile_on_gpu, to_device
from homing._io.parallel import prefetch_map
from homing.edits.differentiable import Views
from homing.extractors.descriptor_network import write_network
from homing.perception import JND, jnd_map
from homing.perception.quality import rms
from homing.training.batches import EDITING, Batches
from homing.training.photo_array import PhotoArray
from homing.training.trainer import PREFETCH_THREADS, SavedNetwork, half_precision, warmup_cosine_schedule
from homing.watermarks.hidden import KIND, HiddenConfig, HiddenNetwork, read_hidden
from homing.watermarks.settings import START_PSNR, HiddenSettings
from homing.watermarks.training_edits import EDITS, random_edit

# Training starts at a low PSNR and without edits. The difficulty rises with each step whose bit accuracy is high
# enough, and in any case between two points of the training.
MIN_BIT_ACCURACY = 0.8  # of the bits
FASTEST_RAMP = 0.25  # share of the steps, at the fastest, from the easiest to full difficulty
LATEST_RAMP = 0.3, 0.6  # shares of the steps


class HiddenTrainer:
    """The trainer of HiDDeN's networks."""

    metric = "bit accuracy"

    def __init__(self, squares: PhotoArray, settings: HiddenSettings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, device
        self._batches = Batches(squares, settings.batch, settings.seed, device)
        self.step, self.steps = 0, max(1, round(settings.epochs * self._batches.per_epoch))
        self.views_per_step = self._batches.count
        self.run_settings: dict[str, Any] = {
            **asdict(settings),
            "photos": len(squares),
            "data_fingerprint": squares.fingerprint,
            "edits": {name: list(span) if span else None for name, span in EDITS.items()},
        }
        self.config = HiddenConfig(bits=settings.bits, size=settings.size, width=settings.width)
        self.network = HiddenNetwork(self.config).to(device).to(memory_format=torch.channels_last)
        self._encode, self._decode = (
            compile_on_gpu(part, device) for part in (self.network.encode, self.network.decode)
        )
        self._optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.lr)
        self._schedule = warmup_cosine_schedule(self._optimizer, self.steps)
        self._difficulty = torch.zeros((), device=device)  # 1 is full difficulty; stays on the device

    def run(self) -> Iterator[Tensor]:
        """Train from the current step to the last; yields losses without synchronizing the device."""
        self.network.train()
        for squares in prefetch_map(self._batches.squares, range(self.step, self.steps), threads=PREFETCH_THREADS):
            yield self._training_step(squares)

    def score(self) -> float:
        """Bit accuracy on edited copies of held-out photos."""
        return self._accuracy(self.network)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "difficulty": self._difficulty,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        self._difficulty = state["difficulty"]

    def write(self, path: Path) -> SavedNetwork:
        """Write both networks to one file."""
        write_network(self.network, self.config, path, kind=KIND)
        network, _ = read_hidden(path)
        return SavedNetwork(self._accuracy(network.to(self.device)), {"photos_per_batch": self._batches.count})

    def _training_step(self, squares: np.ndarray) -> Tensor:
        rng = self._batches.rng(EDITING, self.step)
        with torch.no_grad():
            originals = self._batches.originals(squares, rng)
            messages = self._messages(len(originals), rng)
        with half_precision(self.device):
            patterns = self._encode(originals.pixels, messages)
        psnr = START_PSNR + (self.settings.psnr - START_PSNR) * self._difficulty
        marked = Views(_at_psnr(originals.pixels, patterns, psnr), originals.ratio)
        chosen = to_device(rng.random((len(marked), 1, 1, 1)), self.device) < self._difficulty
        copies = torch.where(chosen, random_edit(marked, rng).pixels, marked.pixels)
        with half_precision(self.device):
            scores = self._decode(copies)
        loss = F.binary_cross_entropy_with_logits(scores, messages.float())
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._schedule.step()
        self.step += 1
        self._update_difficulty(((scores.detach() > 0) == messages).float().mean())
        return loss.detach()

    def _update_difficulty(self, bit_accuracy: Tensor) -> None:
        """Update the difficulty of the next step from the bit accuracy of this one."""
        begins, ends = LATEST_RAMP
        due = max(0.0, (self.step / self.steps - begins) / (ends - begins))
        raised = self._difficulty + (bit_accuracy > MIN_BIT_ACCURACY) / (FASTEST_RAMP * self.steps)
        self._difficulty = raised.clamp(min=due).clamp(max=1)

    @torch.no_grad()
    def _accuracy(self, network: HiddenNetwork) -> float:
        network.eval()
        right = []
        for originals, rng in self._batches.held_out():
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

"""Teaching HiDDeN's two networks: what one hides at the PSNR of a release, the other reads from edited copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._machine import compiled, send
from homing._parallel import map_ahead
from homing.edits.differentiable import Views
from homing.extractors.trained import write_network
from homing.perception import JND, jnd_map
from homing.perception.quality import loudness
from homing.training.batches import EDITING, Batches
from homing.training.squares import Squares
from homing.training.trainer import READERS, Made, in_half, warm_up_and_cosine
from homing.watermarks.copies import EDITS, edited
from homing.watermarks.hidden import KIND, HiddenDesign, HiddenNetwork, read_hidden
from homing.watermarks.settings import LOUD, HiddenSettings

# Training begins loud and unedited: of a message as it is released nothing would be heard yet. It becomes harder with
# each step that hears enough, and from some part of the way to another whether it does or not.
HEARD = 0.8  # of the bits
QUICKEST = 0.25  # of the way, from the easiest to what a release has to stand
AT_THE_LATEST = 0.3, 0.6  # of the way


class HiddenTrainer:
    """HiDDeN's networks, taught step by step."""

    measures = "bit accuracy"

    def __init__(self, squares: Squares, settings: HiddenSettings, device: torch.device) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, device
        self._batches = Batches(squares, settings.batch, settings.seed, device)
        self.step, self.steps = 0, max(1, round(settings.epochs * self._batches.per_epoch))
        self.views_per_step = self._batches.count
        self.about: dict[str, Any] = {
            **asdict(settings),
            "photos": len(squares),
            "data_fingerprint": squares.fingerprint,
            "edits": {name: list(span) if span else None for name, span in EDITS.items()},
        }
        self.design = HiddenDesign(bits=settings.bits, size=settings.size, width=settings.width)
        self.network = HiddenNetwork(self.design).to(device).to(memory_format=torch.channels_last)
        self._encode, self._decode = (compiled(part, device) for part in (self.network.encode, self.network.decode))
        self._optimiser = torch.optim.Adam(self.network.parameters(), lr=settings.rate)
        self._schedule = warm_up_and_cosine(self._optimiser, self.steps)
        self._hardness = torch.zeros((), device=device)  # 1 is what a release has to stand; never waited for

    def run(self) -> Iterator[Tensor]:
        """Teach from the present step to the last; gives the loss of each, not yet waited for."""
        self.network.train()
        for squares in map_ahead(self._batches.squares, range(self.step, self.steps), threads=READERS):
            yield self._learn(squares)

    def score(self) -> float:
        """The share of bits of held-out photos that are read right from edited copies."""
        return self._accuracy(self.network)

    def state(self) -> dict[str, Any]:
        """All that a checkpoint must hold to go on from here."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "schedule": self._schedule.state_dict(),
            "hardness": self._hardness,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._schedule.load_state_dict(state["schedule"])
        self._hardness = state["hardness"]

    def write(self, path: Path) -> Made:
        """Keep both networks in one file."""
        write_network(self.network, self.design, path, kind=KIND)
        network, _ = read_hidden(path)
        return Made(self._accuracy(network.to(self.device)), {"photos_in_a_batch": self._batches.count})

    def _learn(self, squares: np.ndarray) -> Tensor:
        rng = self._batches.rng(EDITING, self.step)
        with torch.no_grad():
            originals = self._batches.originals(squares, rng)
            messages = self._messages(len(originals), rng)
        with in_half(self.device):
            patterns = self._encode(originals.pixels, messages)
        psnr = LOUD + (self.settings.psnr - LOUD) * self._hardness
        marked = Views(_at_psnr(originals.pixels, patterns, psnr), originals.ratio)
        chosen = send(rng.random((len(marked), 1, 1, 1)), self.device) < self._hardness
        copies = torch.where(chosen, edited(marked, rng).pixels, marked.pixels)
        with in_half(self.device):
            scores = self._decode(copies)
        loss = F.binary_cross_entropy_with_logits(scores, messages.float())
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self._schedule.step()
        self.step += 1
        self._harden(((scores.detach() > 0) == messages).float().mean())
        return loss.detach()

    def _harden(self, heard: Tensor) -> None:
        """Decide how hard the next step is, by the share of bits that this one read right."""
        begins, ends = AT_THE_LATEST
        due = max(0.0, (self.step / self.steps - begins) / (ends - begins))
        risen = self._hardness + (heard > HEARD) / (QUICKEST * self.steps)
        self._hardness = risen.clamp(min=due).clamp(max=1)

    @torch.no_grad()
    def _accuracy(self, network: HiddenNetwork) -> float:
        network.eval()
        right = []
        for originals, rng in self._batches.held_out():
            messages = self._messages(len(originals), rng)
            patterns = network.encode(originals.pixels, messages)
            marked = _at_psnr(originals.pixels, patterns, self.settings.psnr)
            copies = edited(Views(marked, originals.ratio), rng).pixels
            right.append(((network.decode(copies) > 0) == messages).float())
        self.network.train()
        return float(torch.cat(right).mean())

    def _messages(self, count: int, rng: np.random.Generator) -> Tensor:
        return send(rng.random((count, self.settings.bits)) < 0.5, self.device)


def _at_psnr(images: Tensor, patterns: Tensor, psnr: Tensor | float) -> Tensor:
    """Images (B, 3, S, S) with patterns of no scale, shaped by the budget of a release and scaled to a PSNR."""
    with torch.no_grad():
        rooms = images.new_tensor(JND.channels)[:, None, None] * jnd_map(images)
    changes = rooms * patterns
    sizes = loudness(changes)[:, None, None, None].clamp_min(1e-8)
    return (images + changes * (10 ** (-psnr / 20) / sizes)).clamp(0, 1)

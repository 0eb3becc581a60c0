"""The folder of one training run: checkpoint, record and curves. The same command continues it."""

from __future__ import annotations

import io
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor

from homing import __version__
from homing._files import write_atomically
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.extractors.trained import trained, write_network
from homing.training.curves import Point, draw_curves
from homing.training.descriptors import Trainer
from homing.training.settings import Settings
from homing.training.squares import Squares

LOOKS = 20  # how often, from first step to last, the held-out photos are looked at and a checkpoint is kept


class Run:
    """One run of training in its folder."""

    def __init__(self, folder: Path, squares: Squares, settings: Settings, device: torch.device) -> None:
        """Begin, or go on where the folder's checkpoint stands; a run of other settings or photos is refused."""
        self.folder = folder
        self.trainer = Trainer(squares, settings, device)
        self.curve: list[Point] = []
        self._about = {"settings": asdict(settings), "photos": len(squares), "data_fingerprint": squares.fingerprint}
        self._checkpoint = folder / "checkpoint.pt"
        if self._checkpoint.is_file():
            self._restore()

    def train(self, out: Path, advance: Callable[[], None], look: Callable[[Point], None]) -> Extractor:
        """Teach to the end and write the network; `advance` is called per step, `look` at each point of the curve."""
        trainer, interval = self.trainer, max(1, self.trainer.steps // LOOKS)
        losses: list[Tensor] = []
        started = time.perf_counter()
        for loss in trainer.run():
            advance()
            losses.append(loss)
            if trainer.step % interval and trainer.step < trainer.steps:
                continue
            self._look(losses, started)
            look(self.curve[-1])
            losses, started = [], time.perf_counter()
        write_network(trainer.network, trainer.design, out)
        extractor = trained(str(out))
        self._record(extractor)
        return extractor

    def _look(self, losses: list[Tensor], started: float) -> None:
        """One point of the curve, and a checkpoint."""
        trainer = self.trainer
        mean = float(torch.stack(losses).mean())  # waits until all steps are done
        if not math.isfinite(mean):
            raise HomingError(f"the loss is no longer a number at step {trainer.step}; try a lower --rate")
        seconds = time.perf_counter() - started
        before = self.curve[-1].seconds if self.curve else 0.0
        views = 2 * trainer.pairs * len(losses)
        self.curve.append(Point(trainer.step, mean, views / seconds, trainer.recall(), before + seconds))
        file = io.BytesIO()
        torch.save({"about": self._about, "curve": [asdict(point) for point in self.curve], **trainer.state()}, file)
        write_atomically(self._checkpoint, file.getvalue())

    def _restore(self) -> None:
        try:
            state = torch.load(self._checkpoint, map_location=self.trainer.device, weights_only=True)
            about, curve = state.pop("about"), [Point(**point) for point in state.pop("curve")]
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError, UnpicklingError) as error:
            raise HomingError(f"{self._checkpoint} is damaged; remove it to begin anew") from error
        if about != self._about:
            raise HomingError(
                f"{self.folder} holds a run with other settings or photos; choose another --out, or remove it"
            )
        self.trainer.restore(state)
        self.curve = curve

    def _record(self, extractor: Extractor) -> None:
        """What was done, for whoever wants to know or do it again; and its curves."""
        device = self.trainer.device
        record = {
            **self._about,
            "extractor_fingerprint": extractor.fingerprint,
            "versions": {"homing": __version__, "torch": torch.__version__, "python": platform.python_version()},
            "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
            "seconds": self.curve[-1].seconds,
            "curve": [asdict(point) for point in self.curve],
        }
        write_atomically(self.folder / "record.json", json.dumps(record, indent=2).encode())
        draw_curves(self.curve, self.folder / "curves.png")

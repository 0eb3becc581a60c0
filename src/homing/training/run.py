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
from typing import Any

import torch
from torch import Tensor

from homing import __version__
from homing._files import write_atomically, writing
from homing._machine import hardware
from homing.edits.differentiable import OFTEN
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.extractors.trained import trained, write_network
from homing.training.curves import Point, draw_curves
from homing.training.descriptors import Trainer
from homing.training.settings import EDITS, Settings
from homing.training.squares import Squares
from homing.training.starting import starting_network

DAMAGED = "{} is damaged; remove it to begin anew"
LOOKS = 20  # how often, from first step to last, the held-out photos are looked at and a checkpoint is kept


class Run:
    """One run of training in its folder."""

    def __init__(self, folder: Path, squares: Squares, settings: Settings, device: torch.device) -> None:
        """Begin, or go on where the folder's checkpoint stands; a run of other settings or photos is refused."""
        self.folder = folder
        self.trainer = Trainer(squares, settings, device)
        self.curve: list[Point] = []
        self._about: dict[str, Any] = {
            **asdict(settings),
            "photos": len(squares),
            "data_fingerprint": squares.fingerprint,
            # As JSON gives them back.
            "edits": {name: list(span) if span else None for name, span in EDITS.items()},
            "often": OFTEN,
        }
        self._checkpoint = folder / "checkpoint.pt"
        if self._checkpoint.is_file():
            self._restore()

    def train(self, out: Path, advance: Callable[[], None], look: Callable[[Point], None]) -> tuple[Extractor, float]:
        """Teach to the end and write the network; gives it, and the recall of held-out photos by the file written.

        `advance` is called per step, `look` at each point of the curve.
        """
        trainer, interval = self.trainer, math.ceil(self.trainer.steps / LOOKS)
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
        made = self.folder / out.name
        write_network(trainer.network, trainer.design, made)
        extractor = trained(str(made), trainer.device)
        recall = trainer.recall(extractor)
        self._record(extractor, recall)
        with writing(out):
            made.replace(out)  # last: where this file is, all is done
        return extractor, recall

    def _look(self, losses: list[Tensor], started: float) -> None:
        """One point of the curve, and a checkpoint."""
        trainer = self.trainer
        mean = float(torch.stack(losses).mean())  # waits until all steps are done
        if not math.isfinite(mean):
            raise HomingError(
                f"the loss is no longer a number at step {trainer.step}; try a lower --rate or a higher --temperature"
            )
        seconds = time.perf_counter() - started
        before = self.curve[-1].seconds if self.curve else 0.0
        views = 2 * trainer.pairs.count * len(losses)
        recall = trainer.recall(trainer.describe)
        self.curve.append(Point(trainer.step, mean, views / seconds, recall, before + seconds))
        file = io.BytesIO()
        torch.save({"about": self._about, "curve": [asdict(point) for point in self.curve], **trainer.state()}, file)
        self._write("checkpoint.pt", file.getvalue())

    def _restore(self) -> None:
        state = _read_checkpoint(self._checkpoint, self._about, self.trainer.device)
        try:
            self.curve = [Point(**point) for point in state["curve"]]
            self.trainer.restore(state)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise HomingError(DAMAGED.format(self._checkpoint)) from error

    def _record(self, extractor: Extractor, recall: float) -> None:
        """What was done, for whoever wants to know or do it again; and its curves."""
        record = {
            "settings": self._about,
            "pairs_in_a_batch": self.trainer.pairs.count,
            "extractor_fingerprint": extractor.fingerprint,
            "recall": recall,
            "versions": {"homing": __version__, "torch": torch.__version__, "python": platform.python_version()},
            "hardware": hardware(),
            "seconds": self.curve[-1].seconds,
            "curve": [asdict(point) for point in self.curve],
        }
        self._write("record.json", json.dumps(record, indent=2).encode())
        self._write("curves.png", draw_curves(self.curve))

    def _write(self, name: str, data: bytes) -> None:
        with writing(self.folder / name):
            write_atomically(self.folder / name, data)


def check_settings(folder: Path, settings: Settings) -> None:
    """Refuse at once, before photos are read, what would be refused after: a start that is not there, another run."""
    starting_network(settings)
    if (folder / "checkpoint.pt").is_file():
        _read_checkpoint(folder / "checkpoint.pt", asdict(settings), torch.device("cpu"))


def _read_checkpoint(path: Path, about: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """What a checkpoint holds; refuses one of a run of which something else is true than `about` says."""
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        was = state["about"]
        other = sorted(name for name, value in about.items() if was.get(name) != value)
    except (
        OSError,
        RuntimeError,
        LookupError,
        TypeError,
        ValueError,
        EOFError,
        AttributeError,
        UnpicklingError,
    ) as error:
        raise HomingError(DAMAGED.format(path)) from error
    if other:
        raise HomingError(
            f"{path.parent} holds a run that differs in {', '.join(other)}; choose another --out, or remove it"
        )
    return state

"""The folder of one training run: checkpoint, record and curves. Running the command again resumes it."""

from __future__ import annotations

import io
import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from homing import __version__
from homing._io.device import hardware
from homing._io.files import report_write_errors, write_atomically
from homing.errors import HomingError
from homing.training.curves import CurvePoint, draw_curves
from homing.training.trainer import SavedNetwork, Trainer

DAMAGED = "{} is damaged; remove it to start again"
CHECKPOINTS = 20  # number of checkpoints and scores over a run


class Run:
    """One run of training in its folder."""

    def __init__(self, folder: Path, trainer: Trainer) -> None:
        """Start a run, or resume it from the folder's checkpoint. Rejects a run with other settings or photos."""
        self.folder, self.trainer = folder, trainer
        self.curve: list[CurvePoint] = []
        self._checkpoint = folder / "checkpoint.pt"
        if self._checkpoint.is_file():
            self._restore()

    def train(self, out: Path, on_step: Callable[[], None], on_checkpoint: Callable[[CurvePoint], None]) -> float:
        """Train to the end and write the network. Returns the score of the written file on held-out photos.

        `on_step` is called per step, `on_checkpoint` at each point of the curve.
        """
        trainer, interval = self.trainer, math.ceil(self.trainer.steps / CHECKPOINTS)
        losses: list[Tensor] = []
        started = time.perf_counter()
        for loss in trainer.run():
            on_step()
            losses.append(loss)
            if trainer.step % interval and trainer.step < trainer.steps:
                continue
            self._checkpoint_and_score(losses, started)
            on_checkpoint(self.curve[-1])
            losses, started = [], time.perf_counter()
        draft = self.folder / out.name
        result = trainer.write(draft)
        self._record(result)
        with report_write_errors(out):
            draft.replace(out)  # last, because this file means that the run is complete
        return result.score

    def _checkpoint_and_score(self, losses: list[Tensor], started: float) -> None:
        """Add a point to the curve and write a checkpoint."""
        trainer = self.trainer
        mean = float(torch.stack(losses).mean())  # waits until all steps are done
        if not math.isfinite(mean):
            raise HomingError(f"the loss is no longer a number at step {trainer.step}; try a lower --lr")
        seconds = time.perf_counter() - started
        before = self.curve[-1].seconds if self.curve else 0.0
        rate = trainer.views_per_step * len(losses) / seconds
        self.curve.append(CurvePoint(trainer.step, mean, rate, trainer.score(), before + seconds))
        file = io.BytesIO()
        torch.save(
            {"run_settings": trainer.run_settings, "curve": [asdict(point) for point in self.curve], **trainer.state()},
            file,
        )
        self._write("checkpoint.pt", file.getvalue())

    def _restore(self) -> None:
        state = _read_checkpoint(self._checkpoint, self.trainer.run_settings, self.trainer.device)
        try:
            self.curve = [CurvePoint(**point) for point in state["curve"]]
            self.trainer.restore(state)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise HomingError(DAMAGED.format(self._checkpoint)) from error

    def _record(self, result: SavedNetwork) -> None:
        """Write record.json and curves.png."""
        metric = self.trainer.metric
        record = {
            "settings": self.trainer.run_settings,
            **result.facts,
            metric.replace(" ", "_"): result.score,
            "versions": {"homing": __version__, "torch": torch.__version__, "python": platform.python_version()},
            "hardware": hardware(),
            "seconds": self.curve[-1].seconds,
            "curve": [asdict(point) for point in self.curve],
        }
        self._write("record.json", json.dumps(record, indent=2).encode())
        self._write("curves.png", draw_curves(self.curve, metric))

    def _write(self, name: str, data: bytes) -> None:
        with report_write_errors(self.folder / name):
            write_atomically(self.folder / name, data)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create and lock a run's folder. Raises an error at once if another process trains there."""
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(folder / ".lock").acquire(timeout=0)
        except Timeout as error:
            raise HomingError(f"another process trains in {folder}; wait for it, or choose another --out") from error
    with lock:
        yield


def check_run(folder: Path, run_settings: Mapping[str, Any]) -> None:
    """Raise an error if the folder holds another run. Called before photos are read."""
    if (folder / "checkpoint.pt").is_file():
        _read_checkpoint(folder / "checkpoint.pt", run_settings, torch.device("cpu"))


def _read_checkpoint(path: Path, run_settings: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Read a checkpoint. Raises an error if its run has other `run_settings`."""
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        was = state["run_settings"]
        other = sorted(name for name, value in run_settings.items() if was.get(name) != value)
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

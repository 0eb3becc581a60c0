"""A run of training: the loop, checkpoints that it resumes from, and its record with curves."""

from __future__ import annotations

import io
import json
import math
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn

from homing import __version__
from homing._io.files import report_write_errors, write_atomically
from homing._io.parallel import prefetch_map
from homing._tensors import hardware, supports_bfloat16
from homing.errors import HomingError
from homing.training.data import Batches

DAMAGED = "{} is damaged; remove it to start again"
CHECKPOINTS = 20  # number of checkpoints and scores over a run
WARM_UP = 0.05  # share of the steps
PREFETCH_THREADS = 4  # batches that are read ahead, of a hundred megabytes each


class SavedNetwork(NamedTuple):
    """A written network: its score on held-out photos, and facts for the record."""

    score: float
    facts: dict[str, Any]


class Trainer(ABC):
    """What is trained, on which batches, by which loss. `Run` has the loop."""

    metric: ClassVar[str]
    """Name of the score."""
    views_per_photo: ClassVar[int] = 1
    """Network inputs that one photo of a batch gives."""

    def __init__(
        self,
        network: nn.Module,
        batches: Batches,
        optimizer: torch.optim.Optimizer,
        settings: Any,
        **further_settings: Any,
    ) -> None:
        """`settings` and the further ones determine the result."""
        self.network, self.batches, self.optimizer = network, batches, optimizer
        self.seed: int = settings.seed
        self.step = 0
        self.steps: int = max(1, round(settings.epochs * batches.per_epoch))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._lr_factor)
        photos = {"photos": len(batches.photos), "data_fingerprint": batches.photos.fingerprint}
        # As they are read again: JSON has no tuples.
        self.run_settings: dict[str, Any] = json.loads(json.dumps(asdict(settings) | photos | further_settings))

    @abstractmethod
    def loss(self, pixels: np.ndarray) -> Tensor:
        """The loss of one batch of photos, (B, 3, S, S) bytes."""

    @abstractmethod
    def score(self) -> float:
        """The score of the network on held-out photos."""

    @abstractmethod
    def write(self, path: Path) -> SavedNetwork:
        """Write the network to a file and score that file."""

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {
            "step": self.step,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])

    def _lr_factor(self, step: int) -> float:
        """A short warm-up, then a cosine to 0."""
        warm = max(1, round(WARM_UP * self.steps))
        if step < warm:
            return (step + 1) / warm
        return 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, self.steps - warm))


def half_precision(device: torch.device) -> torch.autocast:
    """Autocast to bfloat16 on GPUs that support it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and supports_bfloat16(device))


@dataclass(frozen=True)
class CurvePoint:
    """One point of the curves of a run."""

    step: int
    loss: float  # mean since the previous point
    views_per_second: float
    score: float  # of held-out photos
    seconds: float  # since the start, without scoring held-out photos


class Run:
    """One run of training in its folder. Running it again resumes it."""

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
        trainer.network.train()
        steps = range(trainer.step, trainer.steps)
        for pixels in prefetch_map(trainer.batches.pixels, steps, threads=PREFETCH_THREADS):
            torch.manual_seed(trainer.seed + trainer.step)  # for networks with dropout
            loss = trainer.loss(pixels)
            trainer.optimizer.zero_grad()
            torch.autograd.backward(loss)
            trainer.optimizer.step()
            trainer.schedule.step()
            trainer.step += 1
            on_step()
            losses.append(loss.detach())  # not read yet, which would wait for the device
            if trainer.step % interval == 0 or trainer.step == trainer.steps:
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
        views = trainer.views_per_photo * trainer.batches.count * len(losses)
        self.curve.append(CurvePoint(trainer.step, mean, views / seconds, trainer.score(), before + seconds))
        file = io.BytesIO()
        torch.save(
            {"run_settings": trainer.run_settings, "curve": [asdict(point) for point in self.curve], **trainer.state()},
            file,
        )
        self._write("checkpoint.pt", file.getvalue())

    def _restore(self) -> None:
        state = _read_checkpoint(self._checkpoint, self.trainer.run_settings, self.trainer.batches.device)
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
    except Exception as error:  # PyTorch raises many kinds of errors for damaged files
        raise HomingError(DAMAGED.format(path)) from error
    if other:
        raise HomingError(
            f"{path.parent} holds a run that differs in {', '.join(other)}; choose another --out, or remove it"
        )
    return state


def draw_curves(curve: Sequence[CurvePoint], metric: str) -> bytes:
    """Loss and held-out score over the steps, as a PNG; `metric` says what the score is."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    steps = [point.step for point in curve]
    for axes, name, label in zip(figure.subplots(1, 2), ("loss", "score"), ("loss", f"held-out {metric}"), strict=True):
        axes.plot(steps, [getattr(point, name) for point in curve], color="#1f5fa8", marker="o", markersize=3)
        axes.set_xlabel("step")
        axes.set_title(label, loc="left")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120)
    return file.getvalue()

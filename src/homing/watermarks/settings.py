"""Settings of HiDDeN's training."""

from __future__ import annotations

from dataclasses import dataclass

from homing.training.settings import check_limits, check_side

BITS = 20  # of an identifier, as in the paper: enough to distinguish a million photos
START_PSNR = 12.0  # dB: training starts with strong patterns


@dataclass(frozen=True, kw_only=True)
class HiddenSettings:
    """Settings of HiDDeN's training."""

    bits: int = BITS
    size: int = 128  # as in HiDDeN; the paper has 224, three times the work
    width: int = 64
    psnr: float = 43.8
    epochs: float = 10.0
    batch: int = 64
    lr: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_limits(self, LIMITS)
        check_side("size", self.size)


LIMITS: dict[str, tuple[float, float]] = {
    "bits": (1, 1024),
    "size": (32, 2048),
    "width": (1, 1024),
    "psnr": (20, 80),
    "epochs": (0.01, 1e6),
    "batch": (2, 1e6),  # batch norm needs more than one
    "lr": (1e-9, 1),
    "seed": (0, 2**62),
}

"""Settings of HiDDeN's training."""

from __future__ import annotations

from dataclasses import dataclass

from homing._options import Option, check_options, setting
from homing.training.settings import check_side

BITS = 20  # of an identifier, as in the paper: enough to distinguish a million photos
START_PSNR = 12.0  # dB: training starts with strong patterns


@dataclass(frozen=True, kw_only=True)
class HiddenSettings:
    """Settings of HiDDeN's training."""

    bits: int = setting(Option("Bits of a message; the bench uses 20.", minimum=1, maximum=1024), BITS)
    epochs: float = setting(Option("Passes over the photos.", minimum=0.01, maximum=1e6), 10.0)
    # Batch norm needs more than one.
    batch: int = setting(Option("Photos per batch.", minimum=2, maximum=1e6), 64)
    # As in HiDDeN; the paper has 224, three times the work.
    size: int = setting(Option("Side of the input of both networks, in pixels.", minimum=32, maximum=2048), 128)
    width: int = setting(Option("Channels of both networks.", minimum=1, maximum=1024), 64)
    psnr: float = setting(Option("Final PSNR of photos with messages, in dB.", minimum=20, maximum=80), 43.8)
    lr: float = setting(Option("Learning rate.", minimum=1e-9, maximum=1), 1e-3)
    seed: int = setting(Option("The random seed.", minimum=0, maximum=2**62), 0)

    def __post_init__(self) -> None:
        check_options(self)
        check_side("size", self.size)

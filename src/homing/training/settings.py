"""Settings of training: of descriptor networks, and of the networks of a watermark."""

from __future__ import annotations

from dataclasses import dataclass

from homing._options import Option, check_options, option_name, setting
from homing.errors import HomingError

EDITS: dict[str, tuple[float, float] | None] = {
    "contrast": (0.4, 2.2),
    "brightness": (0.2, 2.2),
    "saturation": (0.0, 5.0),
    "hue": (-0.5, 0.5),
    "grayscale": None,
    "filter": None,
    "emoji": (0.4, 0.8),
    "text": (0.1, 0.3),
    "meme": None,
    "sticker": (0.2, 0.6),
    "overlay-text": None,
    "blur": (0.3, 4.0),
    "palette": (2, 16),
    "jpeg": (5, 80),
    "edges": None,
    "pixelate": (0.2, 0.6),
    "shuffle": (0.05, 0.3),
    "resize": (0.05, 1.0),
    "thumbnail": None,
    "crop": (0.2, 1.0),
    "part": (0.3, 0.8),
    "fragment": (5, 100),
    "rotated-fragment": (15, 90),
    "flip": None,
    "aspect": (0.5, 2.0),
    "screenshot": None,
    "pad": None,
    "perspective": (20, 60),
    "rotation": (-180, 180),
    "pasted": (8, 90),
    "page": (10, 60),
    "collage": (2, 4),
    "screen": None,
}
"""Edits of copies in training, with ranges of strengths for photos at the training size."""

EDIT_WEIGHTS = {
    "rotation": 4.0,
    "fragment": 9.0,
    "rotated-fragment": 3.0,
    "crop": 2.0,
    "filter": 2.0,
    "collage": 2.5,
    "screen": 0.4,
}
"""Relative frequency of an edit within its family (default 1): fragments and collages are the hardest."""

FAMILY_WEIGHTS = {"scene": 0.6}
"""Relative frequency of a family of edits (default 1)."""

COUNTS = (0.1, 0.2, 0.3, 0.3, 0.1)
"""Probabilities of one to five edits of a copy, each of another family."""

WEAK_EDITS: dict[str, tuple[float, float] | None] = {
    "contrast": (0.5, 2.0),
    "brightness": (0.5, 2.0),
    "hue": (-0.2, 0.2),
    "blur": (0.3, 1.5),
    "jpeg": (30, 90),
    "resize": (0.3, 1.0),
    "crop": (0.5, 1.0),
    "rotation": (-90, 90),
}
"""Weak edits of originals."""


BITS = 20
"""Bits of an identifier, as in the paper: enough to distinguish a million photos."""


@dataclass(frozen=True, kw_only=True)
class DescriptorSettings:
    """Settings of descriptor training, by default close to SSCD's."""

    init: str = setting(
        Option("Initial weights: imagenet-lite0, homing-1, timm:NAME or a FILE.safetensors."), "imagenet-lite0"
    )
    epochs: float = setting(Option("Passes over the photos.", minimum=0.01, maximum=1e6), 24.0)
    # The loss compares each photo with the others of its batch.
    pairs: int = setting(Option("Photos per batch, each with one edited copy.", minimum=2, maximum=1e6), 1024)
    dim: int = setting(Option("Dimension of the descriptors.", minimum=1, maximum=16_384), 512)
    size: int = setting(Option("Side of the network's input, in pixels.", minimum=32, maximum=2048), 224)
    # Smaller is faster, and improves results at the larger input size.
    training_size: int = setting(Option("Side of the input during training, in pixels.", minimum=32, maximum=2048), 192)
    temperature: float = setting(
        Option(
            "Temperature of the contrastive loss; lower values spread descriptors more evenly.",
            minimum=0.001,
            maximum=10,
        ),
        0.1,
    )
    koleo: float = setting(
        Option("Weight of the differential entropy (KoLeo); 30 in SSCD.", minimum=0, maximum=1000), 0.0
    )
    cells: int = setting(
        Option(
            "Cells of the cell loss, which keeps copies in the cell of their original; 0: no such loss.",
            minimum=0,
            maximum=1e6,
        ),
        0,
    )
    cell_weight: float = setting(Option("Weight of the cell loss.", minimum=0, maximum=1000), 0.1)
    mixup: float = setting(Option("Share of copies that blend two photos.", minimum=0, maximum=1), 0.0)
    # Both sides of a pair vary.
    weak_aug: float = setting(Option("Share of originals with one weak edit.", minimum=0, maximum=1), 0.5)
    whiten: float = setting(
        Option("Whitening of the directions in which copies differ from originals; 0.5: full.", minimum=0, maximum=0.5),
        0.35,
    )
    lr: float = setting(Option("Learning rate.", minimum=1e-9, maximum=1), 1e-3)
    seed: int = setting(Option("The random seed.", minimum=0, maximum=2**62), 0)

    def __post_init__(self) -> None:
        check_options(self)
        check_side("training_size", self.training_size)


@dataclass(frozen=True, kw_only=True)
class HiddenSettings:
    """Settings of HiDDeN's training, a watermark."""

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


def check_side(name: str, side: int) -> None:
    """Refuse a side that is not a multiple of the JPEG edit's blocks."""
    if side % 16:
        raise HomingError(f"{option_name(name)} must be a multiple of 16, got {side}")

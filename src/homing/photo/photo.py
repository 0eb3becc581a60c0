"""Photo: a file's pixels and everything else in the file."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing._io.paths import Location, location, printable
from homing._tensors import to_device, to_numpy
from homing.errors import PhotoError
from homing.photo._decode import decode, image_size
from homing.photo._encode import encode
from homing.photo._jpeg import JpegTables, jpeg_tables
from homing.photo._pixels import CMYK_CHANNELS, is_srgb, stored, to_srgb, upright
from homing.photo.files import format_name

_MIN_UNCOVERED = 0.25  # limits the change of the inks to four times the visible change


def read_file(path: Location) -> bytes:
    """Read the bytes of a regular file or of an address; nothing is decoded."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise PhotoError(f"{printable(path)}: the name is not valid UTF-8; rename the file") from None
    try:
        # Checked before opening, because opening a FIFO waits for its writer.
        if isinstance(path, Path) and not stat.S_ISREG(mode := path.stat().st_mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise PhotoError(f"{path}: {kind}; the file of a photo is expected")
        return path.read_bytes()
    except OSError as error:
        raise PhotoError(f"{path}: cannot be read: {error.strerror}") from error


@dataclass(frozen=True, eq=False)
class Photo:
    """A photo as stored in its file; `pixels()` returns it as a viewer shows it."""

    name: str
    """Name used in messages: the path as given."""
    data: bytes = field(repr=False)
    """The original file. Metadata is read from here when the photo is written."""
    stored_pixels: np.ndarray = field(repr=False)
    """(H, W, C) in the file's own orientation and color space; C is 1, 3 or 4; uint8 or uint16.

    1 is gray, 3 is RGB, 4 is CMYK (amounts of ink)."""
    alpha: np.ndarray | None = field(repr=False)
    """(H, W), of the type of the pixels."""
    format: str
    """A key of `SUFFIXES`."""
    orientation: int
    """As in EXIF, 1 to 8."""
    icc: bytes | None = field(repr=False)
    """The color profile of the pixels; None means sRGB, or CMYK without one."""
    changed: bool = False
    """Whether the pixels differ from those in the file."""

    def __post_init__(self) -> None:
        # Photos are shared between threads, and a changed photo shares arrays with its original.
        for array in (self.stored_pixels, self.alpha):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def load(cls, path: str | Location) -> Photo:
        """Load the photo at `path`, which may be an address such as https://host/beach.jpg."""
        where = location(path)
        return cls.decode(read_file(where), str(where))

    @classmethod
    def decode(cls, data: bytes, name: str) -> Photo:
        """Decode the bytes of a file."""
        return cls(name, data, *decode(data, name))

    @cached_property
    def sha256(self) -> str:
        """The hash of the original file."""
        return sha256(self.data).hexdigest()

    def pixels(self, device: torch.device | None = None) -> Tensor:
        """The pixels as a viewer shows them: (3, H, W) in [0, 1], upright, sRGB, transparent areas on white.

        They are on `device`, by default the CPU, and are bitwise equal on every device.
        """
        pixels = _to_unit_range(to_srgb(self.stored_pixels, self.icc), device)
        if self.alpha is not None:
            opacity = _to_unit_range(self.alpha[..., None], device)
            pixels = pixels * opacity + (1 - opacity)
        oriented = upright(pixels.permute(1, 2, 0), self.orientation).permute(2, 0, 1)
        return oriented.expand(3, -1, -1).contiguous()

    def _levels(self, change: Tensor) -> Tensor:
        """The code values (H, W, C) after the change, on the device of the change."""
        height, width = upright(self.stored_pixels, self.orientation).shape[:2]
        if change.shape != (3, height, width):
            raise PhotoError(f"{self.name}: a change of {(3, height, width)} is expected, got {tuple(change.shape)}")
        step = self.to_stored_orientation(change.detach().float())
        if self.stored_pixels.shape[2] == 1:
            step = _divide(step.sum(dim=0, keepdim=True), 3)
        elif self.stored_pixels.shape[2] == CMYK_CHANNELS:
            # Black ink covers the others, so the change of these is divided by 1 - black.
            uncovered = 1 - _to_unit_range(self.stored_pixels[..., 3:], change.device)
            step = torch.cat([-step / uncovered.clamp_(min=_MIN_UNCOVERED), torch.zeros_like(step[:1])])
        levels = (
            (step * self._max_level)
            .add_(_to_chw(self.stored_pixels, change.device))
            .round_()
            .clamp_(0, self._max_level)
        )
        return levels.to(torch.uint8 if self._max_level == 255 else torch.int32).permute(1, 2, 0).contiguous()

    def to_stored_orientation(self, image: Tensor) -> Tensor:
        """Turn a (C, H, W) image from the orientation of `pixels()` to that of the file."""
        return stored(image.permute(1, 2, 0), self.orientation).permute(2, 0, 1)

    def encode(self, format: str | None = None, finer: bool = False, quick: bool = False) -> bytes:
        """The bytes of a file with these pixels and the metadata of the original.

        `finer` uses more bytes in lossy formats, so that less of a change is lost to rounding. `quick` compresses
        less but faster in the formats of `QUICK_FORMATS`; the pixels are equal.
        """
        return encode(self, format_name(format or self.format), finer, quick)

    def jpeg_tables(self, format: str | None = None, finer: bool = False) -> JpegTables | None:
        """The JPEG tables that `encode` uses for a JPEG photo in sRGB; None for other photos and formats."""
        stays = format_name(format or self.format) == self.format == "JPEG"
        if not stays or not is_srgb(self.stored_pixels, self.icc):
            return None
        return jpeg_tables(self.data, self.stored_pixels.shape[2], finer)

    @property
    def _max_level(self) -> int:
        """The largest code value."""
        return int(np.iinfo(self.stored_pixels.dtype).max)


@dataclass(frozen=True, eq=False)
class PhotoFile:
    """The file of a photo in memory: its bytes, and the name that messages use for it."""

    name: str
    data: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Location) -> PhotoFile:
        """Read the file at a path or an address."""
        return cls(str(path), read_file(path))

    @cached_property
    def sha256(self) -> str:
        """The hash of the file."""
        return sha256(self.data).hexdigest()

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height, from the header."""
        return image_size(self.data, self.name)

    def photo(self) -> Photo:
        """The decoded file."""
        return Photo.decode(self.data, self.name)


def apply_changes(photos: Sequence[Photo], changes: Iterable[Tensor]) -> list[Photo]:
    """Add a change, (3, H, W) in the frame and units of `pixels()`, to the stored pixels of each photo.

    It is added to the native code values, not in sRGB, which would clip wide-gamut colors. In CMYK it is subtracted
    from cyan, magenta and yellow; black is not changed. All changes are on one device, which is synchronized once.
    """
    levels = to_numpy([photo._levels(change) for photo, change in zip(photos, changes, strict=True)])
    return [
        replace(photo, stored_pixels=each.astype(photo.stored_pixels.dtype, copy=False), changed=True)
        for photo, each in zip(photos, levels, strict=True)
    ]


def _to_chw(levels: np.ndarray, device: torch.device | None) -> Tensor:
    """(H, W, C) code values as a (C, H, W) tensor, rearranged on the device after the transfer."""
    known = levels.astype(np.uint8 if levels.dtype == np.uint8 else np.int32)  # few GPU operations support uint16
    return to_device(known, device or torch.device("cpu")).permute(2, 0, 1).contiguous()


def _to_unit_range(levels: np.ndarray, device: torch.device | None) -> Tensor:
    """(H, W, C) code values as (C, H, W) floats in [0, 1]."""
    return _divide(_to_chw(levels, device).float(), int(np.iinfo(levels.dtype).max))


def _divide(values: Tensor, by: int) -> Tensor:
    """Divide by a number, as a tensor: a GPU multiplies by the inverse of a scalar, which rounds differently."""
    return values.div_(torch.full((), by, dtype=values.dtype, device=values.device))

"""Photo: a file's pixels and everything else in the file."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from homing._places import Place, place
from homing.errors import PhotoError
from homing.photo import _colour, _encode
from homing.photo._decode import decode
from homing.photo._orientation import stored, upright
from homing.photo.formats import format_name


def read_file(path: Place) -> bytes:
    """The bytes of a regular file, or of one far away; nothing of them is decoded."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        name = os.fsencode(str(path)).decode(errors="replace")
        raise PhotoError(f"{name}: the name is not valid UTF-8; rename the file") from None
    try:
        # Asked before opening: to open a FIFO is to wait for its writer.
        if isinstance(path, Path) and not stat.S_ISREG(path.stat().st_mode):
            raise PhotoError(f"{path}: not a regular file; a photo is expected")
        return path.read_bytes()
    except OSError as error:
        raise PhotoError(f"{path}: cannot be read: {error.strerror}") from error


@dataclass(frozen=True, eq=False)
class Photo:
    """One photo as it is stored in its file; `view` is what a viewer shows of it."""

    name: str
    """What messages call it: the path as given."""
    data: bytes = field(repr=False)
    """The file as it was. What is not listed below is read from here when the photo is written."""
    pixels: np.ndarray = field(repr=False)
    """(H, W, C) in the file's own orientation and colour space; C is 1 or 3; uint8 or uint16."""
    alpha: np.ndarray | None = field(repr=False)
    """(H, W), of the same type as the pixels."""
    format: str
    """A key of `SUFFIXES`."""
    orientation: int
    """As in EXIF, 1 to 8."""
    icc: bytes | None = field(repr=False)
    """The colour profile of the pixels; None means sRGB."""

    def __post_init__(self) -> None:
        # Photos are shared between threads and kept as "before" beside "after".
        for array in (self.pixels, self.alpha):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def load(cls, path: str | Place) -> Photo:
        """The photo in the file at `path`, which may be an address such as https://host/beach.jpg."""
        where = place(path)
        return cls.decode(read_file(where), str(where))

    @classmethod
    def decode(cls, data: bytes, name: str) -> Photo:
        """The photo in the bytes of a file."""
        return cls(name, data, *decode(data, name))

    @cached_property
    def sha256(self) -> str:
        """The hash of the file as it was."""
        return sha256(self.data).hexdigest()

    def view(self) -> Tensor:
        """What a viewer shows: (3, H, W) in [0, 1], upright, sRGB, on white where it is transparent."""
        shown = _colour.shown(self.pixels, self.icc)
        if self.alpha is not None:
            opacity = (self.alpha / np.float32(self._white))[..., None]
            shown = shown * opacity + (1 - opacity)
        return torch.from_numpy(np.ascontiguousarray(upright(shown, self.orientation).transpose(2, 0, 1)))

    def moved(self, change: Tensor) -> Photo:
        """This photo with `change`, (3, H, W) in the frame and units of `view`, added to its stored pixels.

        The change is added to the native code values, not by way of sRGB, which would clip wide-gamut colours.
        """
        height, width = upright(self.pixels, self.orientation).shape[:2]
        if change.shape != (3, height, width):
            raise PhotoError(f"{self.name}: a change of {(3, height, width)} is expected, got {tuple(change.shape)}")
        step = change.detach().cpu().float().numpy()
        if self.pixels.shape[2] == 1:
            step = step.mean(axis=0, keepdims=True)
        levels = step * self._white
        levels += upright(self.pixels, self.orientation).transpose(2, 0, 1)
        np.rint(levels, out=levels)
        np.clip(levels, 0, self._white, out=levels)
        pixels = stored(levels.astype(self.pixels.dtype).transpose(1, 2, 0), self.orientation)
        return replace(self, pixels=np.ascontiguousarray(pixels))

    def encode(self, format: str | None = None, finer: bool = False, quick: bool = False) -> bytes:
        """The bytes of a file with these pixels and everything else of the original.

        `finer` spends more bytes where the format is lossy, so that less of a change is rounded away; `quick` spends
        less time on making the file small, where it can: its pixels are the same.
        """
        return _encode.encode(self, format_name(format or self.format), finer, quick)

    @property
    def _white(self) -> int:
        """The largest code value."""
        return int(np.iinfo(self.pixels.dtype).max)

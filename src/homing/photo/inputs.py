"""Photos as Python users give them: paths, addresses, files in memory, images, arrays and tensors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import imagecodecs
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homing._io.paths import Address, Location, location, one_line
from homing.errors import PhotoError, ran_out_of_memory
from homing.photo._decode import DECODE_ERRORS, check_size, file_format
from homing.photo.files import SUFFIXES, has_suffix_of, is_file_name
from homing.photo.photo import Photo

PhotoLike = str | Location | bytes | bytearray | memoryview | BinaryIO | Image.Image | np.ndarray | Tensor | Photo
"""One photo in any accepted form."""
PhotosLike = PhotoLike | Iterable[PhotoLike] | Mapping[str, PhotoLike]
"""One photo, several, or several with names."""

ACCEPTED = (
    "a photo is a path, an address, bytes or a binary file object of a photo file, a PIL.Image.Image, a NumPy array "
    "(H, W, 3) in RGB order or (H, W) of uint8 or uint16, a tensor (3, H, W) or (1, H, W) of floats in [0, 1] or of "
    "uint8, or a homing.Photo; several are a list, a dict of names and photos in memory, or a tensor (B, 3, H, W)"
)
_PIL_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # modes that a PNG file stores without conversion


@dataclass(frozen=True, eq=False)
class MemoryPhoto:
    """A photo given in memory: as the bytes of a file, or as pixels, which become a PNG file."""

    given_name: str | None
    """The name of its file, or the name that the user gave it."""
    content: bytes | Photo | np.ndarray | Tensor = field(repr=False)
    """The bytes of a file, a decoded one, (H, W) or (H, W, 3) code values, or (3, H, W) floats in [0, 1]."""

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file."""
        if isinstance(self.content, bytes):
            return self.content
        if isinstance(self.content, Photo):
            return self.content.encode() if self.content.changed else self.content.data
        values = self.content
        levels = values if isinstance(values, np.ndarray) else _to_height_width((values * 255).round().byte())
        return bytes(imagecodecs.png_encode(levels, level=1))

    @cached_property
    def sha256(self) -> str:
        """The hash of the file."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def name(self) -> str:
        """The given name with the suffix of the file's format, or the start of the file's hash."""
        format = file_format(self.data, self.given_name or "photo in memory")
        if self.given_name is None:
            return self.sha256[:16] + SUFFIXES[format]
        name = Path(self.given_name)
        return name.name if has_suffix_of(name, format) else name.stem + SUFFIXES[format]

    def __str__(self) -> str:
        return self.name

    def photo(self) -> Photo:
        """The decoded file."""
        if isinstance(self.content, Photo) and not self.content.changed:
            return self.content
        return Photo.decode(self.data, self.name)

    def pixels(self) -> Tensor:
        """Upright sRGB pixels, (3, H, W) in [0, 1]; those of a float tensor are not rounded to 8 bits."""
        if isinstance(self.content, Tensor):
            return self.content.expand(3, -1, -1).contiguous()
        return (self.content if isinstance(self.content, Photo) else self.photo()).pixels()


def as_photos(photos: PhotosLike) -> list[Location | MemoryPhoto]:
    """The given photos, in order; PhotoError if any of them is not accepted. No path is read yet."""
    if isinstance(photos, Mapping):
        return _refuse_empty([_as_named_photo(name, photo) for name, photo in photos.items()])
    if is_one_photo(photos):
        return [_as_photo(photos)]
    no_batch = isinstance(photos, np.ndarray) or (isinstance(photos, Tensor) and photos.ndim != 4)
    if no_batch or not isinstance(photos, Iterable):
        raise _refused(photos)
    return _refuse_empty([_as_photo_of(f"photo {number}", photo) for number, photo in enumerate(photos, start=1)])


def as_photo(photo: PhotoLike) -> Location | MemoryPhoto:
    """One photo; PhotoError if it is not accepted, or several were given."""
    if not is_one_photo(photo):
        raise PhotoError(f"one photo is expected, got {_describe(photo)}; {ACCEPTED}")
    return _as_photo(photo)


def is_one_photo(photos: PhotosLike) -> bool:
    """Whether a user gave a single photo rather than several."""
    if isinstance(photos, np.ndarray | Tensor):
        return photos.ndim in (2, 3)
    one = (str, os.PathLike, Address, bytes, bytearray, memoryview, Image.Image, Photo)
    return isinstance(photos, one) or hasattr(photos, "read")


def load_pixels(photo: Location | MemoryPhoto) -> Tensor:
    """Upright sRGB pixels of a photo: (3, H, W) in [0, 1]."""
    return photo.pixels() if isinstance(photo, MemoryPhoto) else Photo.load(photo).pixels()


def load_photo(photo: Location | MemoryPhoto) -> Photo:
    """The decoded file of a photo."""
    return photo.photo() if isinstance(photo, MemoryPhoto) else Photo.load(photo)


@dataclass(frozen=True)
class Square:
    """Pixels of a photo as (3, side, side) bytes, whatever its aspect ratio, and the hash of the file."""

    pixels: np.ndarray
    sha256: bytes


def read_square(path: Path, side: int) -> Square | PhotoError:
    """Read a photo as a square, so that many fit in memory; the error if it cannot be read."""
    try:
        photo = Photo.load(path)
        pixels = photo.pixels()[None]
        square = F.interpolate(pixels, (side, side), mode="bilinear", antialias=True, align_corners=False)[0]
        return Square((square * 255).round().clamp(0, 255).byte().numpy(), bytes.fromhex(photo.sha256))
    except PhotoError as error:
        return error
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return PhotoError(f"{path}: too large for the available memory")


def _refuse_empty(photos: Sequence[Location | MemoryPhoto]) -> list[Location | MemoryPhoto]:
    if not photos:
        raise PhotoError("no photos were given; one or several are accepted")
    return list(photos)


def _refused(photo: object) -> PhotoError:
    has_alpha = isinstance(photo, np.ndarray) and photo.ndim == 3 and photo.shape[2] == 4
    hint = "; drop its alpha channel with array[..., :3]" if has_alpha else ""
    return PhotoError(f"got {_describe(photo)}{hint}; {ACCEPTED}")


def _describe(photo: object) -> str:
    """Describe a value in a few words, for an error."""
    if isinstance(photo, np.ndarray):
        return f"an array of shape {photo.shape} and type {photo.dtype}"
    if isinstance(photo, Tensor):
        return f"a tensor of shape {tuple(photo.shape)} and type {str(photo.dtype).removeprefix('torch.')}"
    if isinstance(photo, list | tuple):
        return "a list within a list"
    return "None" if photo is None else f"a value of type {type(photo).__name__}"


def _as_named_photo(name: object, photo: PhotoLike) -> MemoryPhoto:
    if not isinstance(name, str):
        raise PhotoError(f"names of photos must be strings, got {name!r}")
    parsed = _as_photo_of(repr(name), photo)
    if not isinstance(parsed, MemoryPhoto):
        raise PhotoError(f"{parsed}: a file keeps its own name; only photos in memory can be named, got {name!r}")
    if not is_file_name(name):
        raise PhotoError(f"{name!r} cannot be the name of a file; choose a plain name such as beach.png")
    named = MemoryPhoto(name, parsed.content)
    if named.name != name:
        raise PhotoError(f"{name!r} becomes a file of another format; name it {named.name!r}, or give its bytes")
    return named


def _as_photo_of(which: str, photo: Any) -> Location | MemoryPhoto:
    """One of several photos; an error says which."""
    try:
        return _as_photo(photo)
    except PhotoError as error:
        raise PhotoError(f"{which}: {error}") from error


def _as_photo(photo: Any) -> Location | MemoryPhoto:
    """Check one photo of a list, without decoding it."""
    if isinstance(photo, Address):
        return photo
    if isinstance(photo, str | os.PathLike):
        path = os.fspath(photo)
        if not isinstance(path, str) or not path or "\0" in path:
            raise PhotoError(f"{path!r} cannot be the name of a file")
        return location(photo if isinstance(photo, str) else Path(path))
    if isinstance(photo, Photo):
        return MemoryPhoto(_base_name(photo.name), photo)
    if isinstance(photo, Image.Image):
        return _from_pil(photo)
    if isinstance(photo, np.ndarray):
        return MemoryPhoto(None, _checked_array(photo))
    if isinstance(photo, Tensor):
        return _from_tensor(photo)
    if isinstance(photo, bytes | bytearray | memoryview):
        return _from_bytes(bytes(photo), None)
    if hasattr(photo, "read"):
        return _from_file(photo)
    raise _refused(photo)


def _from_bytes(data: bytes, name: str | None) -> MemoryPhoto:
    file_format(data, name or "bytes")
    return MemoryPhoto(name, data)


def _from_file(file: BinaryIO) -> MemoryPhoto:
    name = getattr(file, "name", None)
    label = name if isinstance(name, str) else "file object"
    if getattr(file, "closed", False) is True:
        raise PhotoError(f"{label}: the file object is closed; an open one is accepted")
    try:
        data = file.read()
    except TypeError as error:  # a module or class with a function `read`, or one that needs arguments
        raise _refused(file) from error
    except (OSError, ValueError) as error:
        raise PhotoError(f"{label}: the file object cannot be read: {error}") from error
    if not isinstance(data, bytes):
        raise PhotoError(f"{label}: the file object returns text, not bytes; open it in binary mode ('rb')")
    if not data:
        raise PhotoError(f"{label}: the file object returns no bytes; if it was read before, call seek(0) first")
    return _from_bytes(data, _base_name(name) if isinstance(name, str) else None)


def _from_pil(image: Image.Image) -> MemoryPhoto:
    name = str(getattr(image, "filename", "") or "")
    if image.mode not in _PIL_MODES:
        raise PhotoError(
            f"got a PIL image of mode {image.mode}, accepted are {', '.join(_PIL_MODES)}; give the bytes of its file, "
            "or image.convert('RGB')"
        )
    check_size(image.width, image.height, name or "PIL image")
    if (frames := getattr(image, "n_frames", 1)) > 1:
        raise PhotoError(f"{name or 'PIL image'}: animated or multi-page: one frame is expected, got {frames}")
    written = BytesIO()
    try:
        # Pillow writes the profile by itself, but not the orientation.
        image.save(written, "PNG", exif=image.getexif(), compress_level=1)
    except (*DECODE_ERRORS, ValueError) as error:
        raise PhotoError(f"{name or 'PIL image'}: cannot be read: {one_line(error)}") from error
    return MemoryPhoto(_base_name(name) if name else None, written.getvalue())


def _checked_array(array: np.ndarray) -> np.ndarray:
    """Check (H, W) or (H, W, 3) code values, and copy them, because the caller may change the array later."""
    if array.dtype not in (np.uint8, np.uint16) or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)):
        raise _refused(array)
    check_size(array.shape[1], array.shape[0], "array")
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _from_tensor(tensor: Tensor) -> MemoryPhoto:
    """(1, H, W) or (3, H, W) floats in [0, 1], or uint8."""
    if tensor.ndim != 3 or tensor.shape[0] not in (1, 3):
        raise _refused(tensor)
    check_size(tensor.shape[2], tensor.shape[1], "tensor")
    has_type = tensor.is_floating_point() or tensor.dtype == torch.uint8
    if tensor.is_meta or tensor.layout != torch.strided or not has_type:
        raise _refused(tensor)
    values = tensor.detach().cpu()
    if values.dtype == torch.uint8:
        return MemoryPhoto(None, _to_height_width(values).copy())
    check_unit_range(values)
    return MemoryPhoto(None, values.float().clone())


def _to_height_width(values: Tensor) -> np.ndarray:
    """(1, H, W) or (3, H, W) bytes as an array (H, W) or (H, W, 3)."""
    array: np.ndarray = (values[0] if len(values) == 1 else values.permute(1, 2, 0)).contiguous().numpy()
    return array


def check_unit_range(tensor: Tensor) -> None:
    """Raise PhotoError if a tensor of floats has values outside [0, 1]."""
    values = tensor.detach()
    least, most = float(values.min()), float(values.max())
    if not (least >= 0 and most <= 1):  # also false for NaN
        raise PhotoError(
            f"got {_describe(tensor)} with values from {least:g} to {most:g}; floats in [0, 1] are accepted"
        )


def _base_name(path: str) -> str | None:
    """The last part of a path, if it can be the name of a file."""
    name = location(path).name
    return name if is_file_name(name) else None

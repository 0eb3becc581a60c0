"""TIFF, with tifffile; tags are copied as they are."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import tifffile
from PIL import Image

from homing.photo._metadata import CMYK, COMPRESSION, ICC, LAYOUT, Directory, Metadata, is_tiff
from homing.photo._pillow import image_planes
from homing.photo._pixels import Decoding, Header, is_cmyk, planes, stored, straight

if TYPE_CHECKING:
    from homing.photo.photo import Photo

_GRAY_ON_WHITE, _GRAY, _RGB = 0, 1, 2
_ASSOCIATED, _UNASSOCIATED = 1, 2
_SEPARATE = 2
_LOSSLESS = {1: None, 5: "lzw", 8: "deflate", 32946: "deflate", 32773: "packbits", 50000: "zstd"}


def header(data: bytes, _name: str) -> Header:
    """The first page's size, and the number of pages."""
    with tifffile.TiffFile(BytesIO(data)) as file:
        page = file.pages.first
        return Header("TIFF", (int(page.imagewidth), int(page.imagelength)), len(file.pages))


def decode(data: bytes, name: str) -> Decoding:
    """The first page, with tifffile, which keeps 16 bits; palette, 1 bit and YCbCr with Pillow."""
    with tifffile.TiffFile(BytesIO(data)) as file:
        page, tags = file.pages.first, Directory.read(data)
        if _is_plain(page):
            levels = _levels(page)
        else:
            with Image.open(BytesIO(data), formats=["TIFF"]) as image:
                # Pillow turns TIFF files upright when it loads them.
                levels = stored(image_planes(image, name), tags.orientation())
        return Decoding(levels, page.photometric == CMYK, tags.orientation(), tags.value(ICC))


def _is_plain(page: tifffile.TiffPage) -> bool:
    """Whether `_levels` supports a page: gray, RGB or CMYK of 8 or 16 bits."""
    return (
        page.photometric in (_GRAY_ON_WHITE, _GRAY, _RGB, CMYK)
        and (page.bitspersample, page.dtype) in ((8, np.uint8), (16, np.uint16))
        and page.samplesperpixel <= 5
        and (page.photometric != CMYK or page.samplesperpixel >= 4)
        and page.imagedepth == 1
    )


def _levels(page: tifffile.TiffPage) -> np.ndarray:
    """(H, W, 1 to 5): gray, RGB or CMYK, and alpha if an extra channel is marked as alpha."""
    levels: np.ndarray = page.asarray()
    if page.planarconfig == _SEPARATE and page.samplesperpixel > 1:
        levels = np.moveaxis(levels, 0, -1)
    levels = levels.reshape(page.imagelength, page.imagewidth, page.samplesperpixel)
    colors = {_RGB: 3, CMYK: 4}.get(page.photometric, 1)
    color, extra = levels[..., :colors], levels[..., colors:]
    if page.photometric == _GRAY_ON_WHITE:
        color = np.iinfo(levels.dtype).max - color
    kinds = [int(kind) for kind in page.extrasamples][: extra.shape[2]]
    index = next((i for i, kind in enumerate(kinds) if kind in (_ASSOCIATED, _UNASSOCIATED)), None)
    if index is None:
        return color
    alpha = extra[..., index, None]
    if kinds[index] == _ASSOCIATED:
        color = straight(color, alpha)
    return np.concatenate([color, alpha], axis=2)


def encode(photo: Photo) -> bytes:
    """A TIFF file with the tags of the original file, whatever its format."""
    levels = planes(photo)
    colors = photo.stored_pixels.shape[2]
    tags, compression = _tags(photo.data, photo.icc if is_cmyk(photo) else None)
    buffer = BytesIO()
    tifffile.imwrite(
        buffer,
        levels,
        byteorder=tags.order,
        photometric={1: "minisblack", 3: "rgb", 4: "separated"}[colors],
        planarconfig="contig" if levels.ndim == 3 else None,
        extrasamples=["unassalpha"] if photo.alpha is not None else None,
        compression=compression,
        predictor=compression in ("lzw", "deflate", "zstd"),
        metadata=None,
        software=False,
    )
    return _with_tags(buffer.getvalue(), tags)


def _tags(original: bytes, cmyk_profile: bytes | None) -> tuple[Directory, str | None]:
    """The tags of an original that do not depend on its pixels, and the compression to use."""
    if not is_tiff(original):
        metadata = Metadata.of(original)
        tags = Directory.read(metadata.exif or b"").without(LAYOUT)
        return tags.with_values(cmyk_profile or metadata.icc, metadata.xmp, metadata.dpi), "deflate"
    tags = Directory.read(original)
    compression = _LOSSLESS.get(tags.number(COMPRESSION) or 1, "deflate")
    return tags.without(LAYOUT), compression


def _with_tags(data: bytes, tags: Directory) -> bytes:
    """Replace the directory of a TIFF file by one at its end that also has these tags."""
    written = Directory.read(data)
    own = written.without(entry.tag for entry in tags.entries)
    end = len(data) + len(data) % 2
    directory = Directory(tags.order, (*own.entries, *tags.entries)).pack(end)
    return data[:4] + struct.pack(tags.order + "I", end) + data[8:].ljust(end - 8, b"\0") + directory

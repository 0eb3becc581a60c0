"""JPEG, written with a photo's own tables.

Its segments are copied byte for byte, because Pillow writes only some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image, ImageChops, JpegImagePlugin

from homing.photo._metadata import Metadata
from homing.photo._pixels import flattened, is_cmyk, save

if TYPE_CHECKING:
    from homing.photo.photo import Photo

_SOS, _COM, _APP0, _APP2, _APP14, _APP15 = 0xDA, 0xFE, 0xE0, 0xE2, 0xEE, 0xEF
_TABLES = list[list[int]]
_CMYK_COMPONENTS = 4
_SAMPLINGS = ((1, 1), (1, 2), (2, 2))  # by Pillow's numbers


class JpegTables(NamedTuple):
    """Quantization tables and chroma subsampling of a file."""

    quantization: _TABLES
    """For each component, the 64 quantization steps, row by row."""
    sampling: tuple[int, int]
    """Number of rows and of columns of pixels that share one color."""


class _Settings(NamedTuple):
    """Settings that a changed copy of a file shares with it."""

    tables: _TABLES
    subsampling: int
    progressive: bool
    segments: list[bytes]
    ycck: bool
    """Whether CMYK is stored as brightness, two color differences and black."""


def encode(photo: Photo, finer: bool) -> bytes:
    """A JPEG file with the settings and the segments of a JPEG file, or the metadata of another."""
    image = flattened(photo)
    if photo.format == "JPEG":
        tables, subsampling = _output_tables(photo.data, finer)
        _, _, progressive, segments, ycck = _settings(photo.data)
        image = _as_ycck(image) if ycck else image
        # The same tables give a file of about the same size; for other tables the size is unknown.
        like = None if finer else len(photo.data)
        coded = _save_optimized(image, like, progressive=progressive, qtables=tables, subsampling=subsampling)
        return _splice(segments, coded)
    carried = Metadata.of(photo.data).arguments()
    if is_cmyk(photo) and photo.icc:
        carried["icc_profile"] = photo.icc
    if "exif" in carried:
        carried["exif"] = b"Exif\0\0" + carried["exif"]
    return _save_optimized(image, quality=100 if finer else 95, subsampling=0, **carried)


def jpeg_tables(original: bytes, components: int, finer: bool) -> JpegTables:
    """The tables and subsampling that `encode` uses for an image with this number of components."""
    tables, subsampling = _output_tables(original, finer)
    return JpegTables([*tables, *[tables[-1]] * 2][:components], _SAMPLINGS[subsampling])


def _output_tables(original: bytes, finer: bool) -> tuple[_TABLES, int]:
    """The tables and the subsampling, as Pillow numbers them, of a changed copy of a file."""
    tables, subsampling, *_ = _settings(original)
    if not finer:
        # Pillow cannot write the rare samplings it reports as -1; 4:4:4 loses nothing of them.
        return tables, max(subsampling, 0)
    fine = _fine_tables()
    if len(tables) == _CMYK_COMPONENTS:
        fine = [fine[0], fine[1], fine[1], fine[0]] if _settings(original).ycck else [fine[0]] * _CMYK_COMPONENTS
    both = zip(tables, fine, strict=False)
    return [[_divisor(*pair) for pair in zip(*two, strict=True)] for two in both], 0


def _save_optimized(image: Image.Image, like: int | None = None, progressive: bool = False, **settings: Any) -> bytes:
    """A JPEG file of `image`, with Huffman tables of its own; `like` is the size of a similar file, if known."""
    # For optimized tables libjpeg needs the whole file in one buffer, and Pillow gives it two bytes a pixel.
    if like is None or like > image.width * image.height:
        plain = save(image, "JPEG", **settings)
        if len(plain) > 1.8 * image.width * image.height:
            return plain
    try:
        return save(image, "JPEG", optimize=True, progressive=progressive, **settings)
    except OSError:
        return save(image, "JPEG", **settings)  # the image differs strongly from that of the similar file


def _as_ycck(image: Image.Image) -> Image.Image:
    """A CMYK image whose planes Pillow writes as the components of YCCK, which it does not support itself.

    Pillow stores 255 minus each plane. In YCCK the first three are YCbCr of the inks, the fourth is 255 minus black.
    """
    cyan, magenta, yellow, black = image.split()
    components = Image.merge("RGB", (cyan, magenta, yellow)).convert("YCbCr").split()
    return Image.merge("CMYK", (*map(ImageChops.invert, components), black))


def _divisor(step: int, most: int) -> int:
    """The largest divisor of a step, up to `most`. Coefficients that are multiples of the step stay exact."""
    return max(divisor for divisor in range(1, most + 1) if step % divisor == 0)


def _tables(header: JpegImagePlugin.JpegImageFile) -> _TABLES:
    """The quantization table of each component; for gray and RGB a repeated last table is omitted, as in files."""
    tables = [list(header.quantization[layer[3]]) for layer in header.layer]
    while 1 < len(tables) < _CMYK_COMPONENTS and tables[-1] == tables[-2]:
        tables.pop()
    return tables


@cache
def _fine_tables() -> _TABLES:
    """The tables of quality 96."""
    with Image.open(BytesIO(save(Image.new("RGB", (8, 8)), "JPEG", quality=96))) as header:
        assert isinstance(header, JpegImagePlugin.JpegImageFile)
        return _tables(header)


@lru_cache(maxsize=16)  # each of several threads writes a photo several times in a row
def _settings(original: bytes) -> _Settings:
    with Image.open(BytesIO(original)) as header:
        assert isinstance(header, JpegImagePlugin.JpegImageFile)
        cmyk = header.mode == "CMYK"
        ycck = cmyk and bool(header.info.get("adobe_transform"))
        progressive = bool(header.info.get("progressive"))
        kept = [whole for marker, whole in _segments(original) if _is_metadata(marker) and not _is_stale(whole, cmyk)]
        return _Settings(_tables(header), JpegImagePlugin.get_sampling(header), progressive, kept, ycck)


def _splice(metadata: list[bytes], encoded: bytes) -> bytes:
    """Combine the APPn and COM segments of one file with everything else of another."""
    coding = [whole for marker, whole in _segments(encoded) if not _is_metadata(marker)]
    pixels = encoded[2 + sum(len(whole) for _, whole in _segments(encoded)) :]
    return b"".join([encoded[:2], *metadata, *coding, pixels])


def _is_metadata(marker: int) -> bool:
    return marker == _COM or _APP0 <= marker <= _APP15


def _is_stale(segment: bytes, cmyk: bool) -> bool:
    """Whether a segment is invalid in the new file: it describes another coding, or pictures that are dropped."""
    marker, body = segment[1], segment[4:]
    # Pillow always writes YCbCr for RGB, so the original's Adobe segment may be wrong; for CMYK it stays valid.
    return (marker == _APP14 and not cmyk) or (marker == _APP2 and body.startswith(b"MPF\0"))


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Marker and bytes of each segment before the pixels."""
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF or data[position + 1] == 0xFF:
            position += 1  # padding
            continue
        marker = data[position + 1]
        if marker == _SOS:
            return
        end = position + 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        yield marker, data[position:end]
        position = end

"""Encode a photo, by format, with the metadata of its original file. JPEG has a module of its own.

Chunks of PNG and tags of TIFF are copied byte by byte, because libraries drop those they do not know.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import TYPE_CHECKING, Any

import imagecodecs
import numpy as np
import pillow_heif
import tifffile
from PIL import Image

from homing._io.paths import one_line
from homing.errors import PhotoError
from homing.photo import _jpeg
from homing.photo._decode import DECODE_ERRORS, is_lossless_webp, png_chunks
from homing.photo._metadata import COMPRESSION, LAYOUT, Directory, Metadata, is_heif, is_tiff
from homing.photo._pixels import in_srgb, is_cmyk, planes, save, to_8_bit, upright
from homing.photo.files import QUALITIES, display_format

if TYPE_CHECKING:
    from homing.photo.photo import Photo

_CMYK_FORMATS = ("JPEG", "TIFF")  # the formats that hold CMYK; in others it becomes sRGB

_PNG_PIXELS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
# Chunks that stay valid after a small change of the pixels or of the color type.
_PNG_COPIED = {
    *(b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"mDCV", b"cLLI"),
    *(b"pHYs", b"eXIf", b"iTXt", b"tEXt", b"zTXt", b"tIME", b"sPLT"),
}
_TIFF_COMPRESSIONS = {1: None, 5: "lzw", 8: "deflate", 32946: "deflate", 32773: "packbits", 50000: "zstd"}
# Slower presets of x265 take at least four times as long for slightly smaller files.
_HEIF_PRESET = "ultrafast"
# Properties of a picture that stay valid after a small change of its pixels.
_HEIF_KEPT = (
    *("nclx_profile", "pixel_aspect_ratio", "content_light_level", "mastering_display_colour_volume"),
    *("ambient_viewing_environment", "nominal_diffuse_white_luminance"),
)


def encode(photo: Photo, format: str, finer: bool, quick: bool) -> bytes:
    """The bytes of a file in `format`, a key of `SUFFIXES`."""
    if is_cmyk(photo) and format not in _CMYK_FORMATS:
        photo = in_srgb(photo)
    try:
        match format:
            case "PNG":
                return _png(photo, quick)
            case "TIFF":
                return _tiff(photo)
            case "BMP":
                return _bmp(photo)
            case _:
                lossy = {"JPEG": _jpeg.encode, "WEBP": _webp, "AVIF": _avif, "HEIC": _heif}
                return lossy[format](photo, finer)
    except DECODE_ERRORS as error:
        raise PhotoError(f"{photo.name}: cannot be written as {display_format(format)}: {one_line(error)}") from error


def _png(photo: Photo, quick: bool) -> bytes:
    """A PNG file with the chunks of a PNG file, or the metadata of another; `quick` compresses less."""
    if photo.format == "PNG":
        copied = (whole for type_, whole in png_chunks(photo.data) if type_ in _PNG_COPIED or _is_safe_to_copy(type_))
        chunks = b"".join(copied)
    else:
        chunks = _new_png_chunks(Metadata.of(photo.data))
    data = bytes(imagecodecs.png_encode(planes(photo), level=1 if quick else None))
    header, *pixels = (whole for type_, whole in png_chunks(data) if type_ in _PNG_PIXELS)
    return b"".join([data[:8], header, chunks, *pixels])


def _is_safe_to_copy(type_: bytes) -> bool:
    """Whether an unknown chunk is marked as safe to copy."""
    return type_ not in _PNG_PIXELS and bool(type_[3] & 32)


def _new_png_chunks(metadata: Metadata) -> bytes:
    """Chunks for the metadata of a file of another format."""
    made = []
    if metadata.icc:
        made.append((b"iCCP", b"ICC\0\0" + zlib.compress(metadata.icc)))
    if metadata.dpi:
        made.append((b"pHYs", struct.pack(">2IB", *(round(value / 0.0254) for value in metadata.dpi), 1)))
    if metadata.exif:
        made.append((b"eXIf", metadata.exif))
    if metadata.xmp:
        made.append((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + metadata.xmp))
    return b"".join(
        struct.pack(">I", len(body)) + type_ + body + struct.pack(">I", zlib.crc32(type_ + body))
        for type_, body in made
    )


def _tiff(photo: Photo) -> bytes:
    """A TIFF file with the tags of the original file that do not depend on its pixels, whatever its format."""
    if is_tiff(photo.data):
        tags = Directory.read(photo.data)
        compression = _TIFF_COMPRESSIONS.get(tags.number(COMPRESSION) or 1, "deflate")
        tags = tags.without(LAYOUT)
    else:
        metadata, cmyk_profile = Metadata.of(photo.data), photo.icc if is_cmyk(photo) else None
        tags, compression = Directory.read(metadata.exif or b"").without(LAYOUT), "deflate"
        tags = tags.with_values(cmyk_profile or metadata.icc, metadata.xmp, metadata.dpi)
    levels = planes(photo)
    buffer = BytesIO()
    tifffile.imwrite(
        buffer,
        levels,
        byteorder=tags.order,
        photometric={1: "minisblack", 3: "rgb", 4: "separated"}[photo.stored_pixels.shape[2]],
        planarconfig="contig" if levels.ndim == 3 else None,
        extrasamples=["unassalpha"] if photo.alpha is not None else None,
        compression=compression,
        predictor=compression in ("lzw", "deflate", "zstd"),
        metadata=None,
        software=False,
    )
    return _with_tags(buffer.getvalue(), tags)


def _with_tags(data: bytes, tags: Directory) -> bytes:
    """Replace the directory of a TIFF file by one at its end that also has these tags."""
    own = Directory.read(data).without(entry.tag for entry in tags.entries)
    end = len(data) + len(data) % 2
    directory = Directory(tags.order, (*own.entries, *tags.entries)).pack(end)
    return data[:4] + struct.pack(tags.order + "I", end) + data[8:].ljust(end - 8, b"\0") + directory


def _webp(photo: Photo, finer: bool) -> bytes:
    # Lossy WebP halves the resolution of color: only a photo that was lossy WebP before loses nothing visible.
    lossless = finer if photo.format != "WEBP" else is_lossless_webp(photo.data)
    image, carried = _without_gray_profile(photo)
    return save(image, "WEBP", lossless=lossless, quality=QUALITIES["WEBP"][finer], exact=True, **carried)


def _avif(photo: Photo, finer: bool) -> bytes:
    image, settings = _without_gray_profile(photo)
    if finer:
        settings["subsampling"] = "4:4:4"
    if photo.alpha is not None:
        settings["advanced"] = {"a:cq-level": "0"}  # lossless alpha
    return save(image, "AVIF", quality=QUALITIES["AVIF"][finer], **settings)


def _without_gray_profile(photo: Photo) -> tuple[Image.Image, dict[str, Any]]:
    """The photo and its metadata for a format that stores gray as RGB, for which a gray profile is invalid."""
    carried = Metadata.of(photo.data).arguments()
    if photo.icc is not None and photo.stored_pixels.shape[2] != 3:
        photo = in_srgb(photo)
        carried.pop("icc_profile", None)
    return Image.fromarray(to_8_bit(planes(photo))), carried


def _bmp(photo: Photo) -> bytes:
    """A BMP file, which holds no orientation and no profile: both are applied to the pixels."""
    dpi = Metadata.of(photo.data).dpi or (96, 96)
    plain = photo if photo.icc is None else in_srgb(photo)
    image = Image.fromarray(np.ascontiguousarray(upright(to_8_bit(planes(plain)), photo.orientation)))
    if photo.alpha is None:
        return save(image, "BMP", dpi=dpi)
    # Pillow cannot read back the alpha it writes, so this writes a header with channel masks (BITMAPV4HEADER).
    image = image.convert("RGBA")
    rows = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM).tobytes("raw", "BGRA")
    per_meter = [round(value / 0.0254) for value in dpi]
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, *image.size, 1, 32, 3, len(rows), *per_meter, 0, 0)
    header += struct.pack("<4I", *masks) + b"BGRs" + bytes(48)
    return struct.pack("<2sIII", b"BM", 14 + len(header) + len(rows), 0, 14 + len(header)) + header + rows


def _heif(photo: Photo, finer: bool) -> bytes:
    """A HEIF file; pixels are written upright, EXIF and XMP hold no orientation."""
    # Gray with alpha is decoded as RGB, for which a gray profile is invalid.
    plain = in_srgb(photo) if photo.icc and photo.alpha is not None and photo.stored_pixels.shape[2] == 1 else photo
    levels, metadata, before = planes(plain), Metadata.of(photo.data), {}
    if is_heif(photo.data):
        file = pillow_heif.open_heif(photo.data)
        before = file[file.primary_index].info
    info: dict[str, Any] = {"exif": metadata.exif, "xmp": metadata.xmp}
    pillow_heif.set_orientation(info)
    carried = {key: value for key, value in {**info, "icc_profile": plain.icc}.items() if value}
    carried |= {key: before[key] for key in _HEIF_KEPT if key in before}
    tiles = before.get("tiling", {})
    if tiles and tiles["tile_width"] == tiles["tile_height"]:
        carried["tile_size"] = tiles["tile_width"]
    bits = 8
    if levels.dtype != np.uint8:
        bits = 12 if before.get("bit_depth") == 12 else 10
        most = (1 << bits) - 1
        levels = ((levels.astype(np.uint32) * most + 32767) // 65535).astype(np.uint16)
    mode = {2: "LA", 3: "RGB", 4: "RGBA"}[levels.shape[2]] if levels.ndim == 3 else "L"
    oriented = np.ascontiguousarray(upright(levels, photo.orientation))
    buffer = BytesIO()
    pillow_heif.encode(
        mode if bits == 8 else f"{mode};{bits}",
        oriented.shape[1::-1],
        oriented.tobytes(),
        buffer,
        bit_depth=bits,
        quality=QUALITIES["HEIC"][finer],
        chroma=444 if finer else before.get("chroma", 420),
        enc_params={"preset": _HEIF_PRESET},
        **carried,
    )
    return buffer.getvalue()

"""Differences between a written file and the original: size, pixel format, metadata."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

import tifffile
from PIL import Image, JpegImagePlugin, PngImagePlugin

from homing._io.files import format_size
from homing._io.paths import one_line
from homing.errors import PhotoError
from homing.photo._decode import DECODE_ERRORS, is_16_bit_png, is_lossless_webp, open_heif
from homing.photo._metadata import CMYK, Metadata, is_heif, is_tiff
from homing.photo.files import QUALITIES, display_format

_GROWTH = 1.5  # larger files than this factor times the original are reported
_PALETTE, _BILEVEL, _GRAY, _RGB, _CMYK = "palette", "black and white", "gray", "RGB", "CMYK"
_KINDS = {"1": _BILEVEL, "L": _GRAY, "LA": _GRAY, "I;16": _GRAY, "P": _PALETTE, "PA": _PALETTE, "CMYK": _CMYK}
_TIFF_KINDS = {0: _GRAY, 1: _GRAY, 3: _PALETTE, CMYK: _CMYK}
_TIFF_ALPHA = (1, 2)
_TIFF_IPTC, _TIFF_PHOTOSHOP, _TIFF_LAYERS = 33723, 34377, 37724
_LAYERS = "the Photoshop layers"
_IPTC_RESOURCE = 0x0404  # of Photoshop
_PNG_METADATA = ("XML:com.adobe.xmp", "Raw profile type ")  # text chunks that hold XMP or EXIF


class _Header(NamedTuple):
    """Properties of a file's pixels, read from its header."""

    format: str
    kind: str
    bits: int
    alpha: bool
    icc: bool
    metadata: frozenset[str]
    pictures: int = 1
    auxiliary: tuple[str, ...] = ()
    chroma: tuple[int, ...] | int | None = None
    progressive: bool = False
    tables: tuple[tuple[int, ...], ...] = ()
    lossless: bool = False


def differences(before: bytes, after: bytes, name: str = "photo") -> list[str]:
    """Sentences on differences of a written file from the original, other than the change of the pixels.

    Only headers are read. `name` is used in messages.
    """
    if before == after:
        return []
    try:
        old, new = _header(before, name), _header(after, name)
    except (PhotoError, *DECODE_ERRORS) as error:  # a note must not cost a photo that could be released
        return [f"The differences from the original are not known: {one_line(error)}."]
    changes = [*_pixel_changes(old, new), *_coding_changes(old, new), *_losses(old, new)]
    if len(after) > _GROWTH * len(before):
        cause, changes = _cause_of_growth(old, new, changes)
        sizes = f"{format_size(len(before))} to {format_size(len(after))}"
        changes = [f"{display_format(new.format)} grew from {sizes}: {cause}", *changes]
    return [each[0].upper() + each[1:] for each in changes]


def _cause_of_growth(old: _Header, new: _Header, changes: list[str]) -> tuple[str, list[str]]:
    """Why a file is larger, as the end of a sentence, and the other changes."""
    if old.format == new.format and new.format in QUALITIES and not new.lossless:
        # The quality of the original is not known: such a file does not state it.
        quality, _ = QUALITIES[new.format]
        return f"it is written at quality {quality} of 100 or higher, and the change adds detail.", changes
    return (changes[0], changes[1:]) if changes else ("the change adds detail, which compresses badly.", [])


def _pixel_changes(old: _Header, new: _Header) -> Iterator[str]:
    if old.kind == _CMYK != new.kind:
        kind = "sRGB" if new.kind == _RGB else new.kind
        yield f"CMYK became {kind}, without its profile." if old.icc else f"CMYK became {kind}."
    elif old.kind != new.kind:
        yield f"{'a palette' if old.kind == _PALETTE else old.kind} became {new.kind}."
    elif old.icc and not new.icc:
        yield "the color profile was applied to the pixels and removed."
    if old.bits > max(new.bits, 8):
        yield f"{old.bits} bits per channel became {new.bits}."
    if old.alpha and not new.alpha:
        yield "transparent areas became white."


def _coding_changes(old: _Header, new: _Header) -> Iterator[str]:
    if old.format != new.format:
        yield f"{display_format(old.format)} became {display_format(new.format)}."
        return
    if old.tables != new.tables:
        yield "written with finer quantization tables."
    if old.chroma != new.chroma:
        yield "written with color at full resolution."
    if old.progressive != new.progressive:
        yield "progressive coding became baseline." if old.progressive else "baseline coding became progressive."


def _losses(old: _Header, new: _Header) -> Iterator[str]:
    for lost in sorted(old.metadata - new.metadata):
        yield f"{lost} was dropped."
    if old.pictures > new.pictures:
        count = old.pictures - new.pictures
        yield f"{count} other picture{' in the file was' if count == 1 else 's in the file were'} dropped."
    for lost in sorted(set(old.auxiliary) - set(new.auxiliary)):
        yield f"{lost} {'were' if lost == _LAYERS else 'was'} dropped."


def _header(data: bytes, name: str) -> _Header:
    if is_heif(data):
        return _heif_header(data, name)
    return _tiff_header(data) if is_tiff(data) else _pillow_header(data)


def _heif_header(data: bytes, name: str) -> _Header:
    file, primary = open_heif(data, name)
    mode, metadata = primary.mode.partition(";")[0].replace("I", "L"), Metadata.of(data)
    depth = ("depth map",) if primary.info["depth_images"] else ()
    gain = ("HDR gain map",) if any("gainmap" in kind for kind in primary.info["aux"]) else ()
    return _Header(
        format="HEIC",
        kind=_KINDS.get(mode, _RGB),
        bits=primary.info["bit_depth"],
        alpha=mode in ("LA", "RGBA", "RGBa"),
        icc=bool(metadata.icc),
        metadata=_metadata(metadata),
        pictures=len(file),
        auxiliary=depth + gain,
        chroma=primary.info.get("chroma"),
    )


def _tiff_header(data: bytes) -> _Header:
    with tifffile.TiffFile(BytesIO(data)) as file:
        page = file.pages.first
        bits = int(page.bitspersample)
        kind = _TIFF_KINDS.get(int(page.photometric), _RGB)
        alpha = any(int(each) in _TIFF_ALPHA for each in page.extrasamples)
        icc = page.iccprofile is not None
        resources = page.tags.valueof(_TIFF_PHOTOSHOP, default=b"")
        iptc = _TIFF_IPTC in page.tags or b"8BIM" + _IPTC_RESOURCE.to_bytes(2, "big") in bytes(resources)
        found = _metadata(Metadata.of(data)) | ({"IPTC"} if iptc else set())
        layers = (_LAYERS,) if _TIFF_LAYERS in page.tags else ()
    return _Header("TIFF", _BILEVEL if bits == 1 else kind, bits, alpha, icc, found, auxiliary=layers)


def _pillow_header(data: bytes) -> _Header:
    with Image.open(BytesIO(data)) as image:
        format = str(image.format)
        found = _metadata(Metadata.of(data))
        found |= {"comment"} if image.info.get("comment") or _has_text(image) else set()
        found |= {"IPTC"} if _IPTC_RESOURCE in image.info.get("photoshop", {}) else set()
        tables: tuple[tuple[int, ...], ...] = ()
        chroma = None
        if isinstance(image, JpegImagePlugin.JpegImageFile):
            format = "JPEG"  # MPO, too
            tables = tuple(tuple(image.quantization[layer[3]]) for layer in image.layer)
            chroma = tuple(size for layer in image.layer for size in layer[1:3]) if image.layers > 1 else None
        return _Header(
            format=format,
            kind=_KINDS.get(image.mode, _RGB),
            bits=_bits(data, format),
            alpha=bool(image.has_transparency_data),
            icc="icc_profile" in image.info,
            metadata=found,
            pictures=getattr(image, "n_frames", 1),
            chroma=chroma,
            progressive=bool(image.info.get("progressive")),
            tables=tables,
            lossless=format == "WEBP" and is_lossless_webp(data),
        )


def _has_text(image: Image.Image) -> bool:
    """Whether a PNG file has text chunks with anything but metadata of other kinds."""
    return isinstance(image, PngImagePlugin.PngImageFile) and any(
        not name.startswith(_PNG_METADATA) for name in image.text
    )


def _bits(data: bytes, format: str) -> int:
    """Bits per channel of a file that Pillow reads."""
    if format == "PNG":
        return 16 if is_16_bit_png(data) else 8
    if format == "AVIF":  # Pillow decodes to 8 bits; the box "av1C" tells what the file has
        flags = data[data.index(b"av1C") + 6]
        return (12 if flags & 0x20 else 10) if flags & 0x40 else 8
    return 8


def _metadata(metadata: Metadata) -> frozenset[str]:
    return frozenset(name for name, value in (("EXIF", metadata.exif), ("XMP", metadata.xmp)) if value)

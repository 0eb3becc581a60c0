"""Randomly damaged files of every supported format, and a process that reads them, so that crashes are detected."""

from __future__ import annotations

import os
import random
import struct
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from io import BytesIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import numpy as np
import tifffile
from tests.photo.photo_files import cmyk_profile, exif, heic_of_10_bits, lossless, noise, saved, scene, wide_gamut

from homing.errors import PhotoError
from homing.photo import Photo

LONGEST = 10.0  # seconds per file
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 20_000, 100_000)


Read = Callable[[bytes], tuple[str, str]]


class Verdict(NamedTuple):
    """Result of reading a file."""

    kind: str  # decoded, refused, raised, hung or crashed
    words: str
    seconds: float


@cache
def seeds() -> dict[str, bytes]:
    """Valid files of each format."""
    picture, gray = scene(48, 64), scene(48, 64)[..., 0]
    files = {
        "jpeg": saved(picture, "JPEG", exif=exif(6), icc_profile=wide_gamut()),
        "jpeg-progressive": saved(picture, "JPEG", progressive=True, quality=95, subsampling=0),
        "jpeg-cmyk": saved(picture, "JPEG", "CMYK", icc_profile=cmyk_profile()),
        "jpeg-gray": saved(gray, "JPEG"),
        "png": saved(picture, "PNG", exif=exif(3), icc_profile=wide_gamut()),
        "png-palette": saved(picture, "PNG", "P"),
        "png-alpha": saved(picture, "PNG", "RGBA"),
        "png-16": lossless(noise(48, 64, 4, dtype=np.uint16), "PNG"),
        "webp": saved(picture, "WEBP", exif=exif(8), quality=70),
        "webp-lossless": saved(picture, "WEBP", "RGBA", lossless=True),
        "avif": saved(picture, "AVIF", exif=exif(5), speed=9),
        "avif-alpha": saved(picture, "AVIF", "RGBA", speed=9),
        "heic": saved(picture, "HEIC", exif=exif(6), quality=70),
        "heic-alpha": saved(picture, "HEIC", "RGBA", chroma=444),
        "heic-10": heic_of_10_bits(),
        "bmp": saved(picture, "BMP"),
        "bmp-palette": saved(picture, "BMP", "P"),
        "tiff-16": lossless(noise(48, 64, 3, dtype=np.uint16), "TIFF"),
        "tiff-cmyk": saved(picture, "TIFF", "CMYK", compression="tiff_lzw"),
        "tiff-palette": saved(picture, "TIFF", "P"),
        "tiff-fax": saved(gray, "TIFF", "1", compression="group4"),
        "tiff-jpeg": saved(picture, "TIFF", compression="jpeg"),
    }
    for name, settings in {
        "tiff-tiled": {"tile": (16, 16), "compression": "deflate", "predictor": True},
        "tiff-planes": {"planarconfig": "separate", "compression": "lzw"},
        "tiff-big": {"bigtiff": True, "compression": "packbits"},
    }.items():
        buffer = BytesIO()
        planes = np.moveaxis(picture, 2, 0) if name == "tiff-planes" else picture
        tifffile.imwrite(buffer, planes, photometric="rgb", metadata=None, **settings)
        files[name] = buffer.getvalue()
    return files


def damaged(number: int) -> tuple[str, bytes]:
    """The name of a seed file and a mutation of it, determined by the number."""
    rng = random.Random(number)
    name = rng.choice(sorted(seeds()))
    data = bytearray(seeds()[name])
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            data = rng.choice(_MUTATIONS)(data, rng)
    if name.startswith("png") and rng.random() < 0.7:
        data = _with_checksums(data)  # otherwise most files are refused for their checksum
    return name, bytes(data)


def _offset(data: bytearray, rng: random.Random) -> int:
    """A random offset, more often in the header."""
    return rng.randrange(min(len(data), rng.choice((64, 300, len(data)))))


def _flip(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice((1, 2, 8, 64))):
        data[_offset(data, rng)] ^= 1 << rng.randrange(8)
    return data


def _extreme(data: bytearray, rng: random.Random) -> bytearray:
    """Set a number, such as a width, a count or an offset, to an extreme value."""
    at, size = _offset(data, rng), rng.choice((1, 2, 4))
    order = rng.choice(("little", "big"))
    data[at : at + size] = (rng.choice(_EXTREMES) % (1 << 8 * size)).to_bytes(size, order)
    return data


def _cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: _offset(data, rng)]


def _piece(data: bytearray, rng: random.Random) -> slice:
    start = _offset(data, rng)
    return slice(start, start + rng.choice((1, 4, 12, 100, 1000)))


def _drop(data: bytearray, rng: random.Random) -> bytearray:
    del data[_piece(data, rng)]
    return data


def _repeat(data: bytearray, rng: random.Random) -> bytearray:
    piece = _piece(data, rng)
    data[piece.start : piece.start] = data[piece] * rng.choice((1, 2, 50))
    return data


def _swap(data: bytearray, rng: random.Random) -> bytearray:
    first, second = sorted((_offset(data, rng), _offset(data, rng)))
    return data[:first] + data[second:] + data[first:second]


def _scribble(data: bytearray, rng: random.Random) -> bytearray:
    piece = _piece(data, rng)
    data[piece] = rng.randbytes(piece.stop - piece.start)
    return data


def _graft(data: bytearray, rng: random.Random) -> bytearray:
    """Join the start of the file and the end of another file."""
    other = rng.choice(list(seeds().values()))
    return data[: _offset(data, rng)] + other[rng.randrange(len(other)) :]


_MUTATIONS = (_flip, _extreme, _extreme, _cut, _drop, _repeat, _swap, _scribble, _graft)


def _with_checksums(data: bytearray) -> bytearray:
    position = 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            break
        struct.pack_into(">I", data, end, zlib.crc32(data[position + 4 : end]))
        position = end + 4
    return data


def read_in_process(files: Iterable[bytes], *, read: Read | None = None, longest: float = LONGEST) -> Iterator[Verdict]:
    """Read each file in another process, which is restarted after a crash or a timeout."""
    worker, pipe = _start(read or read_one)
    try:
        for data in files:
            started = time.perf_counter()
            verdict = _await_verdict(pipe, data, longest)
            if verdict[0] in ("hung", "crashed"):
                worker.kill()
                worker.join()
                worker, pipe = _start(read or read_one)
            yield Verdict(*verdict, time.perf_counter() - started)
    finally:
        worker.kill()
        worker.join()


def read_one(data: bytes) -> tuple[str, str]:
    """Decode a file, get its pixels and encode it again."""
    try:
        photo = Photo.decode(data, "a")
        photo.pixels()
        photo.encode()
    except PhotoError as error:
        good = str(error).startswith("a: ") and "\n" not in str(error)
        return "refused" if good else "raised", str(error)
    except Exception:  # noqa: BLE001 - any other exception is a bug that this test looks for
        return "raised", traceback.format_exc()
    return "decoded", photo.format


def _await_verdict(pipe: Connection, data: bytes, longest: float) -> tuple[str, str]:
    try:
        pipe.send(data)
        if not pipe.poll(longest):
            return "hung", f"more than {longest:g} s"
        kind, words = pipe.recv()
    except (EOFError, OSError):
        return "crashed", "the process died"
    return kind, words


def _start(read: Read) -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=_work, args=(theirs, read), daemon=True)
    worker.start()
    theirs.close()
    ours.recv()  # imports are done; timing starts now
    return worker, ours


def _work(pipe: Connection, read: Read) -> None:
    warnings.filterwarnings("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libtiff and libpng print warnings
    pipe.send("ready")
    while True:
        pipe.send(read(pipe.recv()))

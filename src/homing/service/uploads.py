"""Multipart requests: described, parsed in memory within the limits, and checked before anything is decoded."""

from __future__ import annotations

import asyncio
import re
import sys
import unicodedata
import zipfile
from collections.abc import AsyncGenerator
from http import HTTPStatus
from io import BytesIO
from typing import Any

from fastapi import HTTPException, Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from homing.errors import HomingError, PhotoError, TooLargeError, UnsupportedError
from homing.photo import PhotoFile
from homing.service.limits import Limits, Reservation

_LONGEST_NAME = 200  # bytes: file systems take 255
_FIELDS = 16
# Each pattern needs text behind it, so that compressed pixels rarely match. <?= also occurs in uncompressed pixels, so
# a call or a superglobal must follow. Other document types are allowed: some programs embed printer settings (plist).
_MARKUP = re.compile(
    rb"<(?:(?:!doctype\s(?:html|svg)|\?php|html|head|body|script|iframe|svg)[\s>=][\s -~]{8}"
    rb"|\?=[\s -~]{0,40}?(?-i:[a-z_]{4}\(|\$_[A-Z]{3,7}\[)"
    rb"|!--#[a-z][\s -~]{8})",
    re.IGNORECASE,
)
_STEP, _OVERLAP = 1 << 20, 128  # bytes searched at a time, so that other threads get their turn
_MARKER = re.compile(rb"\xff[\x02-\xcf\xd8-\xfe]")  # of a JPEG; other values occur within its entropy-coded data
_SCAN, _END = 0xDA, 0xD9
_SCANS = 100  # progressive JPEG files have about ten
_ARCHIVES = {"a RAR archive": b"Rar!\x1a\x07", "a 7z archive": b"7z\xbc\xaf\x27\x1c"}

_FILE = {"type": "string", "format": "binary"}
PHOTOS = {"photo": {"type": "array", "items": _FILE, "minItems": 1}}
TWO_PHOTOS = {"first": _FILE, "second": _FILE}


def multipart_body(files: dict[str, Any], **values: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI description of a request body with required files and optional values."""
    schema = {"type": "object", "properties": {**files, **values}, "required": list(files)}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


class Form:
    """A parsed multipart request: files and values by field name."""

    def __init__(self, files: dict[str, list[PhotoFile]], values: dict[str, str]) -> None:
        self.values = values
        self._files = files

    def photos(self, field: str = "photo") -> list[PhotoFile]:
        """The files of a field. Raises HomingError if there are none."""
        if not self._files.get(field):
            raise HomingError(f"a file in the multipart field '{field}' is expected")
        return self._files[field]

    def photo(self, field: str = "photo") -> PhotoFile:
        """The only file of a field. Raises HomingError if there are none or several."""
        first, *others = self.photos(field)
        if others:
            raise HomingError(f"one file is expected in the field '{field}', got more")
        return first


class _InMemoryParser(MultiPartParser):
    """A parser that keeps everything in memory, and stops at the first file that is too large."""

    spool_max_size = sys.maxsize

    def __init__(self, request: Request, stream: AsyncGenerator[bytes, None], limits: Limits) -> None:
        super().__init__(request.headers, stream, max_files=limits.photos, max_fields=_FIELDS, max_part_size=10_000)
        self._max_bytes, self._received = limits.bytes, 0

    def on_part_begin(self) -> None:
        self._received = 0
        super().on_part_begin()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._received += end - start
        if self._received > self._max_bytes:
            name = getattr(self._current_part.file, "filename", None) or "a field"
            raise TooLargeError(f"{name}: larger than {self._max_bytes:,} bytes, the limit for a photo")
        super().on_part_data(data, start, end)


async def read_form(request: Request, limits: Limits, reservation: Reservation) -> Form:
    """Parse a multipart request into memory, within the reservation."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "photos are expected as multipart/form-data")
    too_large = HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"larger than {limits.request_bytes:,} bytes, the limit for one request"
    )
    stated = request.headers.get("content-length", "0")
    if stated.isdecimal() and int(stated) > limits.request_bytes:
        raise too_large

    async def counted() -> AsyncGenerator[bytes, None]:
        received = 0
        async for chunk in request.stream():
            received += len(chunk)
            if received > limits.request_bytes:
                raise too_large
            reservation.reserve(len(chunk))
            yield chunk

    try:
        form = await asyncio.wait_for(_InMemoryParser(request, counted(), limits).parse(), limits.seconds)
    except asyncio.TimeoutError:
        line = f"the request was not received within {limits.seconds} s"
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, line, headers={"Connection": "close"}) from None
    except ClientDisconnect as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "the request ended before all of it was received") from error
    except MultiPartException as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"the multipart request cannot be read: {error.message}") from error
    files: dict[str, list[PhotoFile]] = {}
    values: dict[str, str] = {}
    for field, value in form.multi_items():
        if isinstance(value, UploadFile):
            files.setdefault(field, []).append(PhotoFile(_check_name(value.filename or ""), await value.read()))
            await value.close()
        else:
            values[field] = value
    reservation.admit()  # only now: slow senders do not take the place of others
    return Form(files, values)


def _check_name(name: str) -> str:
    """Check that a file name is plain and short enough to be stored."""
    label = ascii(name[:80])
    if not name or name.startswith(".") or re.search(r"[/\\:]", name) or any(map(_is_control_character, name)):
        raise HTTPException(
            HTTPStatus.BAD_REQUEST,
            f"{label}: a plain file name is expected: no folders, colons, leading dots or control characters",
        )
    if len(name.encode(errors="replace")) > _LONGEST_NAME or "\ufffd" in name:
        raise HTTPException(
            HTTPStatus.BAD_REQUEST, f"{label}: a name of at most {_LONGEST_NAME} bytes of UTF-8 text is expected"
        )
    return name


def _is_control_character(character: str) -> bool:
    """Whether a character is invisible or changes how others are shown.

    Spaces of all kinds are allowed, since macOS uses one in the names of screenshots, and so are joiners.
    """
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200c\u200d"


def check_upload(upload: PhotoFile, limits: Limits) -> None:
    """Check a file by its header. Raises for files that are too large, not photos, or also valid in another format."""
    name, data = upload.name, upload.data
    start = data[:1024].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").lower()
    if start.startswith((b"<svg", b"<?xml", b"<!doctype svg")):
        raise UnsupportedError(f"{name}: SVG and other XML are not accepted; a photo is expected")
    width, height = upload.size
    if width * height > limits.pixels:
        raise TooLargeError(f"{name}: {width}×{height}, more than the limit of {limits.pixels:,} pixels")
    if data.startswith(b"\xff\xd8") and _count_scans(data) > _SCANS:
        line = f"a JPEG of more than {_SCANS} scans, which takes too long to decode; save it again"
        raise PhotoError(f"{name}: {line}")
    if (other := _find_embedded_format(data)) is not None:
        raise PhotoError(f"{name}: contains {other} as well as a photo; save the photo again")


def _count_scans(data: bytes) -> int:
    """Number of scans of a JPEG, counted up to the limit."""
    offset = found = 0
    while found <= _SCANS and (marker := _MARKER.search(data, offset + 2)) and data[marker.start() + 1] != _END:
        found += data[marker.start() + 1] == _SCAN
        offset = marker.start() + int.from_bytes(data[marker.end() : marker.end() + 2], "big")
    return found


def _find_embedded_format(data: bytes) -> str | None:
    """Another format that the file is valid in, or contains; None if there is none."""
    # The end record of an archive alone occurs in one photo of about ten thousand.
    if zipfile.is_zipfile(BytesIO(data)) and b"PK\x01\x02" in data:
        return "a ZIP archive"
    if b"%PDF-" in data[:1024]:
        return "a PDF"
    for name, mark in _ARCHIVES.items():
        if mark in data:
            return name
    for offset in range(0, len(data), _STEP):
        if _MARKUP.search(data, offset, offset + _STEP + _OVERLAP):
            return "HTML, SVG or a script"
    return None

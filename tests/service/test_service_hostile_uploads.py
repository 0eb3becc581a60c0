"""Malicious and oversized uploads are rejected in one line, and nothing of them is stored."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from contextlib import closing
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image
from tests.service.conftest import TIMEOUT, Server


def jpeg(size: tuple[int, int] = (64, 64)) -> bytes:
    buffer = BytesIO()
    Image.effect_noise(size, 50).convert("RGB").save(buffer, "JPEG")
    return buffer.getvalue()


def archive() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("run.me", "anything")
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header states many pixels, almost without data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def scans(count: int) -> bytes:
    """A white progressive JPEG with `count` scans."""

    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, 2 + len(data)) + data

    def scan(frequency: int, data: bytes) -> bytes:
        return segment(0xDA, bytes([1, 1, 0, frequency, frequency, 0])) + data

    one_code = bytes([1, *[0] * 15])
    head = segment(0xDB, bytes([0, *[1] * 64])) + segment(0xC2, struct.pack(">BHHB", 8, 64, 64, 1) + b"\x01\x11\x00")
    tables = segment(0xC4, b"\x00" + one_code + b"\x00") + segment(0xC4, b"\x10" + one_code + b"\x60")
    empty = bytes([0b00000001])  # 64 blocks of nothing: the code for 64 and more, and six bits that say 64
    others = b"".join(scan(1 + number % 63, empty) for number in range(count - 1))
    return b"\xff\xd8" + head + tables + scan(0, bytes(8)) + others + b"\xff\xd9"


SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
HTML = b"<!DOCTYPE html><html><body><script>alert(1)</script></body></html>"
REFUSED = {
    "empty": (b"", 422, "empty"),
    "text": (b"no photo at all", 415, "not a photo"),
    "svg": (SVG, 415, "SVG"),
    "svg after spaces": (b"\n  " + SVG, 415, "SVG"),
    "html": (HTML, 415, "not a photo"),
    "html in front": (HTML + jpeg(), 415, "not a photo"),
    "html behind": (jpeg() + HTML, 422, "HTML"),
    "svg behind": (jpeg() + SVG, 422, "SVG"),
    "php in a comment": (jpeg()[:2] + b"\xff\xfe\x00\x20<?php system($_GET[0]); ?>   " + jpeg()[2:], 422, "script"),
    "short php in a comment": (jpeg()[:2] + b"\xff\xfe\x00\x11<?=`$_GET[0]`?>" + jpeg()[2:], 422, "script"),
    "short php behind": (jpeg() + b"<?=system('id')/*", 422, "script"),
    "include of a server behind": (jpeg() + b'<!--#exec cmd="ls"-->', 422, "script"),
    "endless scans": (scans(101), 422, "scans"),
    "archive": (archive(), 415, "not a photo"),
    "archive behind": (jpeg() + archive(), 422, "ZIP"),
    "rar behind": (jpeg() + b"Rar!\x1a\x07\x01\x00" + bytes(50), 422, "RAR"),
    "pdf near the start": (jpeg()[:2] + b"\xff\xfe\x00\x10%PDF-1.7 abcde" + jpeg()[2:], 422, "PDF"),
    "bomb": (bomb(30_000, 30_000), 413, "too large"),
    "above the limit": (bomb(10_000, 10_001), 413, "pixels"),
    "cut": (jpeg((400, 400))[:3000], 422, "damaged"),
    "too small": (jpeg((8, 8)), 422, "too small"),
    "gif": (b"GIF89a" + bytes(20), 415, "not"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/photos", "/v1/activate"])
def test_a_bad_upload_is_refused_in_one_line(server: Server, what: str, path: str) -> None:
    data, status, word = REFUSED[what]
    answer = server.post(path, ("beach.jpg", data))
    assert answer.status_code == status, answer.text
    detail = answer.json()["detail"]
    assert detail.startswith("beach.jpg: ") and word in detail and "\n" not in detail
    assert str(server.folder) not in answer.text and "Traceback" not in answer.text
    assert [each.name for each in (server.folder / "uploads").rglob("*") if each.name != "released"] == []


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("field", ["first", "second"])
def test_bad_uploads_are_not_compared(server: Server, photos: Path, what: str, field: str) -> None:
    data, status, word = REFUSED[what]
    good = ("rocket.jpg", (photos / "rocket.jpg").read_bytes())
    answer = server.client.post("/v1/compare", files={"first": good, "second": good, field: ("beach.jpg", data)})
    detail = answer.json()["detail"]
    assert answer.status_code == status and detail.startswith("beach.jpg: ") and word in detail


def test_trailing_pictures_are_accepted(server: Server) -> None:
    """Phones write a preview or a gain map after the picture itself."""
    assert server.post("/v1/search", ("phone.jpg", jpeg() + jpeg())).status_code == 200


def test_a_jpeg_of_many_scans_is_accepted(server: Server) -> None:
    assert server.post("/v1/search", ("scanned.jpg", scans(100))).status_code == 200
    assert (
        server.post("/v1/search", ("scanned.jpg", scans(100) + scans(100))).status_code == 200
    )  # with another JPEG after it


def test_uncompressed_pixels_are_not_mistaken_for_a_script(server: Server, photos: Path) -> None:
    buffer = BytesIO()
    with Image.open(photos / "rocket.jpg") as rocket:
        rocket.save(buffer, "TIFF")
    assert b"<?=" in buffer.getvalue()
    assert server.post("/v1/search", ("rocket.tiff", buffer.getvalue())).status_code == 200


def test_printer_settings_are_not_mistaken_for_a_script(server: Server) -> None:
    plist = b'<!DOCTYPE plist PUBLIC "-//Apple Computer//DTD PLIST 1.0//EN"><plist version="1.0"/>'
    marked = jpeg()[:2] + b"\xff\xed" + struct.pack(">H", 2 + len(plist)) + plist + jpeg()[2:]
    assert server.post("/v1/search", ("printed.jpg", marked)).status_code == 200


@pytest.mark.parametrize(
    "name",
    [
        *("../beach.jpg", "/etc/passwd", "..\\beach.jpg", "a/b.jpg", ".hidden.jpg", "..", "a\x00b.jpg", "a\nb.jpg"),
        *("x" * 300 + ".jpg", "c:beach.jpg", "a\u202egpj.exe.jpg", "a\u2028b.jpg"),
    ],
)
def test_unsafe_file_names_are_refused(server: Server, name: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="photo"; filename="%s"\r\n\r\n%s\r\n--b--\r\n'
    answer = server.client.post(
        "/v1/photos",
        content=body % (name.encode(), jpeg()),
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )
    assert answer.status_code == 400 and "\n" not in answer.json()["detail"]
    assert [file for file in (server.folder / "uploads").rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    "name", ["Screenshot 2026-05-04 at 9.12.33\u202fAM.jpg", "写真\u30001.jpg", "می\u200cخواهم.jpg", "a\u00a0b.jpg"]
)
def test_unicode_spaces_in_file_names_are_accepted(server: Server, name: str) -> None:
    (outcome,) = server.post("/v1/photos", (name, jpeg())).json()["outcomes"]
    assert outcome["state"] == "added" and server.client.get(f"/v1/photos/{outcome['id']}").json()["photo"] == name
    assert server.client.delete(f"/v1/photos/{outcome['id']}").status_code == 204


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "multipart/form-data; boundary=b", 422),
        (b"nothing of the kind", "multipart/form-data; boundary=b", 400),
        (b"--b\r\n", "multipart/form-data", 400),
        (json.dumps({"photo": "x"}).encode(), "application/json", 415),
        (
            b'--b\r\nContent-Disposition: form-data; name="photo"\r\n\r\ntext\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            422,
        ),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\ntext\r\n--b--\r\n", "multipart/form-data; boundary=b", 400),
    ],
)
def test_bodies_without_a_photo_are_refused(server: Server, body: bytes, kind: str, status: int) -> None:
    answer = server.client.post("/v1/search", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("charset", ["rot13", "idna", "utf-7", "base64", "utf-16", "nonsense", "ÿ"])
def test_unusual_charsets_do_not_break_the_service(server: Server, charset: str) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="photo"; filename="\xff+AGE-.jpg"\r\n\r\n%s\r\n--b--\r\n' % jpeg()
    )
    kind = f"multipart/form-data; boundary=b; charset={charset}".encode("latin-1")
    answer = server.client.post("/v1/search", content=body, headers={"Content-Type": kind})
    assert answer.status_code in (200, 400, 422)


def test_an_oversized_file_is_refused_while_it_is_sent(server: Server) -> None:
    """It is rejected before most of it, which is never sent."""
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Length": "190000000"}
    part = b'--b\r\nContent-Disposition: form-data; name="photo"; filename="large.jpg"\r\n\r\n'
    with closing(HTTPConnection(urlsplit(server.address).netloc, timeout=TIMEOUT)) as connection:
        connection.request("POST", "/v1/search", part + jpeg() + bytes(50_000_001), headers)
        answer = connection.getresponse()
        assert answer.status == 413 and "50,000,000 bytes" in json.loads(answer.read())["detail"]


def test_an_oversized_content_length_is_refused_unread(server: Server) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b", "Content-Length": "900000000000"}
    with closing(HTTPConnection(urlsplit(server.address).netloc, timeout=TIMEOUT)) as connection:
        connection.request("POST", "/v1/search", headers=headers)
        assert connection.getresponse().status == 413


def test_more_photos_than_a_request_may_hold_are_refused(server: Server, copy: Path) -> None:
    answer = server.post("/v1/search", *[copy] * 65)
    assert answer.status_code == 400 and "64" in answer.json()["detail"]

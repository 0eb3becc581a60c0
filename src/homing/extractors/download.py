"""Downloads of published files into the cache folder, pinned to the bytes of the first download."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock

from homing._io.files import fsync_folder, report_write_errors, temporary_path, write_atomically
from homing.errors import HomingError

TIMEOUT = 30  # seconds without a single byte
CHUNK_SIZE = 1 << 20
_BY_HAND = "download it by other means and give it with --file FILE"

Report = Callable[[int, int], None]


def cache_path(address: str) -> Path:
    """The cache path of the file at this address: in HOMING_CACHE, or in the user's cache folder."""
    system = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("HOMING_CACHE") or Path(system) / "homing")
    return folder.expanduser() / PurePosixPath(urlsplit(address).path).name


def is_cached(address: str) -> bool:
    """Whether a file of the right size is cached; its hash is not checked."""
    target = cache_path(address)
    try:
        pin = _read_pin(target)
    except HomingError:  # reported when the file is fetched or loaded
        return False
    return pin is not None and target.is_file() and target.stat().st_size == pin["size"]


def is_intact(address: str) -> bool:
    """Whether the file is cached and has the pinned hash."""
    target = cache_path(address)
    pin = _read_pin(target)
    return pin is not None and is_cached(address) and _sha256(target) == pin["sha256"]


def fetch_file(
    address: str, check: Callable[[Path], object], *, file: Path | None = None, report: Report = lambda *_: None
) -> Path:
    """Download the file at the address, or copy `file`, into the cache; atomic, safe across processes.

    `check` raises an error if the file is invalid. `report` gets the bytes so far and in total. Authors
    publish no hashes, so the hash of the first download is pinned, and other files are refused from then on.
    """
    target = cache_path(address)
    if file is None and is_intact(address):
        return target
    with report_write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_name(f".{target.name}.lock")).acquire()
    with lock:
        if file is None and is_intact(address):
            return target
        part = _download(address, target, report) if file is None else temporary_path(target)
        try:
            if file is not None:
                _copy(file, part)
            check(part)
            _accept(part, target, address, str(file or address))
        finally:
            part.unlink(missing_ok=True)
        for stale in target.parent.glob(f"{target.name}.*.part"):  # of earlier versions of the file
            stale.unlink()
    return target


def _copy(file: Path, part: Path) -> None:
    if not file.is_file():
        raise HomingError(f"no such file: {file}")
    with report_write_errors(part):
        shutil.copyfile(file, part)


def _accept(part: Path, target: Path, address: str, origin: str) -> None:
    """Pin the file, then rename it into place, in this order."""
    pin: dict[str, Any] = {"address": address, "size": part.stat().st_size, "sha256": _sha256(part)}
    first = _read_pin(target) or pin
    if first["sha256"] != pin["sha256"]:
        raise HomingError(
            f"{origin} has changed since it was first fetched: sha256 {pin['sha256'][:12]}…, expected "
            f"{first['sha256'][:12]}…; to take the new file on purpose, delete {_pin_path(target)} and fetch again"
        )
    with report_write_errors(target):
        write_atomically(_pin_path(target), json.dumps(first, indent=2).encode())
        part.replace(target)
        fsync_folder(target.parent)


def _download(address: str, target: Path, report: Report) -> Path:
    """Download to a file beside the target, resuming a partial download."""
    response = _open_url(address)
    length, version = response.headers["Content-Length"], response.headers["ETag"] or response.headers["Last-Modified"]
    if length is None:
        response.close()
        raise HomingError(f"{address} does not say how large the file is; {_BY_HAND}")
    size = int(length)
    # Named by the version, so that parts of two versions are never mixed.
    part = target.with_name(f"{target.name}.{hashlib.sha256(f'{version} {size}'.encode()).hexdigest()[:12]}.part")
    done = part.stat().st_size if part.exists() and version else 0
    if 0 < done < size:
        response.close()
        response = _open_url(address, start=done)
    if done != size:
        _receive(response, part, done if response.status == http.client.PARTIAL_CONTENT else 0, size, report)
    response.close()
    return part


def _receive(response: http.client.HTTPResponse, part: Path, done: int, size: int, report: Report) -> None:
    report(done, size)
    with report_write_errors(part), part.open("ab" if done else "wb") as file:
        while chunk := _read(response):
            file.write(chunk)
            done += len(chunk)
            report(done, size)
        file.flush()
        os.fsync(file.fileno())
    if (done := part.stat().st_size) != size:
        raise HomingError(
            f"the connection to {response.url} broke after {done / 1e6:.1f} of {size / 1e6:.1f} MB; "
            "run the same command again to resume"
        )


def _read(response: http.client.HTTPResponse) -> bytes:
    """The next bytes; none if the connection broke, which the size then shows."""
    try:
        return response.read(CHUNK_SIZE)
    except (OSError, http.client.HTTPException):
        return b""


def _open_url(address: str, start: int = 0) -> Any:
    """The response to a request for the bytes from `start` on, through the proxy that the environment names, if any."""
    headers = {"User-Agent": "homing"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        # A new opener reads the environment again.
        return urllib.request.build_opener().open(urllib.request.Request(address, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise HomingError(f"{address} answers {error.code} {error.reason}; {_BY_HAND}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise HomingError(f"cannot reach {address}: {reason}; check the network or the proxy, or {_BY_HAND}") from error


def _pin_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _read_pin(target: Path) -> dict[str, Any] | None:
    """The pin: address, size and hash of the first download."""
    path = _pin_path(target)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        pin = {key: content[key] for key in ("address", "size", "sha256")}
        if [type(value) for value in pin.values()] != [str, int, str]:
            raise TypeError
        return pin
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HomingError(f"{path} is damaged; delete it and fetch again") from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_SIZE):
            digest.update(chunk)
    return digest.hexdigest()

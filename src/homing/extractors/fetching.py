"""Files that others publish: fetched once into the user's cache folder, and from then on the same bytes for ever."""

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

from homing._files import sync_folder, write_atomically, writing
from homing.errors import HomingError

TIMEOUT = 30  # seconds without a single byte
PIECE = 1 << 20

Report = Callable[[int, int], None]


def kept_at(address: str) -> Path:
    """Where the file at this address is kept: in HOMING_CACHE, or where the system keeps such files."""
    system = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("HOMING_CACHE") or Path(system) / "homing")
    return folder.expanduser() / PurePosixPath(urlsplit(address).path).name


def is_kept(address: str) -> bool:
    """Whether a file of the right size is there; its bytes are not looked at."""
    place = kept_at(address)
    try:
        pin = _pinned(place)
    except HomingError:  # whoever fetches or loads this file is told; the others have nothing to do with it
        return False
    return pin is not None and place.is_file() and place.stat().st_size == pin["size"]


def is_intact(address: str) -> bool:
    """Whether the file is there and holds the bytes that were fetched first."""
    place = kept_at(address)
    pin = _pinned(place)
    return pin is not None and is_kept(address) and _sha256(place) == pin["sha256"]


def fetch_file(
    address: str, check: Callable[[Path], object], *, file: Path | None = None, report: Report = lambda *_: None
) -> Path:
    """Keep what is at the address, or a file already downloaded from it. Afterwards it is there whole, or not at all.

    `check` raises an error if the file is not what it should be. `report` is told how many bytes of how many are here.
    Authors publish no hashes: the first file's hash is written down beside it, and no other file is taken later.
    Who fetches what another process is fetching waits for it.
    """
    place = kept_at(address)
    if file is None and is_intact(address):
        return place
    with writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        alone = FileLock(place.with_name(f".{place.name}.lock")).acquire()
    with alone:
        if file is None and is_intact(address):
            return place
        part = _download(address, place, report) if file is None else _copy(file, place)
        try:
            _accept(part, place, address, str(file or address), check)
        finally:
            part.unlink(missing_ok=True)
        for stale in place.parent.glob(f"{place.name}.*.part"):  # of files the authors have replaced since
            stale.unlink()
    return place


def _accept(part: Path, place: Path, address: str, origin: str, check: Callable[[Path], object]) -> None:
    """Write down what the file is, then give it its name: never the other way round."""
    check(part)
    pin: dict[str, Any] = {"address": address, "size": part.stat().st_size, "sha256": _sha256(part)}
    first = _pinned(place) or pin
    if first["sha256"] != pin["sha256"]:
        raise HomingError(
            f"{origin} has changed since it was first fetched: sha256 {pin['sha256'][:12]}…, expected "
            f"{first['sha256'][:12]}…; to take the new file on purpose, delete {_pin_of(place)} and fetch again"
        )
    with writing(place):
        write_atomically(_pin_of(place), json.dumps(first, indent=2).encode())
        part.replace(place)
        sync_folder(place.parent)


def _download(address: str, place: Path, report: Report) -> Path:
    """All the bytes at the address, in a file beside the place. What came before the connection broke is used."""
    answer = _ask(address)
    length, version = answer.headers["Content-Length"], answer.headers["ETag"] or answer.headers["Last-Modified"]
    if length is None:
        answer.close()
        raise HomingError(f"{address} does not say how large the file is; {_BY_HAND}")
    size = int(length)
    # Named by the version, so that parts of two versions are never put together.
    part = place.with_name(f"{place.name}.{hashlib.sha256(f'{version} {size}'.encode()).hexdigest()[:12]}.part")
    done = part.stat().st_size if part.exists() and version else 0
    if 0 < done < size:
        answer.close()
        answer = _ask(address, start=done)
    if done != size:
        _receive(answer, part, done if answer.status == http.client.PARTIAL_CONTENT else 0, size, report)
    answer.close()
    return part


def _receive(answer: http.client.HTTPResponse, part: Path, done: int, size: int, report: Report) -> None:
    report(done, size)
    with writing(part), part.open("ab" if done else "wb") as file:
        while piece := _read(answer):
            file.write(piece)
            done += len(piece)
            report(done, size)
        file.flush()
        os.fsync(file.fileno())
    if (done := part.stat().st_size) != size:
        raise HomingError(
            f"the connection to {answer.url} broke after {done / 1e6:.1f} of {size / 1e6:.1f} MB; "
            "the same command continues from there"
        )


def _read(answer: http.client.HTTPResponse) -> bytes:
    """The next bytes; none where the connection broke, which the size then tells."""
    try:
        return answer.read(PIECE)
    except (OSError, http.client.HTTPException):
        return b""


def _ask(address: str, start: int = 0) -> Any:
    """The answer to a request for the bytes from `start` on, through the proxy that the environment names, if any."""
    request = urllib.request.Request(address, headers={"User-Agent": "homing"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        return urllib.request.build_opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise HomingError(f"{address} answers {error.code} {error.reason}; {_BY_HAND}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise HomingError(f"cannot reach {address}: {reason}; check the network or the proxy, or {_BY_HAND}") from error


def _copy(file: Path, place: Path) -> Path:
    if not file.is_file():
        raise HomingError(f"no such file: {file}")
    part = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with writing(part):
            shutil.copyfile(file, part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part


def _pin_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


def _pinned(place: Path) -> dict[str, Any] | None:
    """What was written down about the file that was fetched first."""
    path = _pin_of(place)
    if not path.is_file():
        return None
    try:
        said = json.loads(path.read_bytes())
        pin = {key: said[key] for key in ("address", "size", "sha256")}
        if [type(value) for value in pin.values()] != [str, int, str]:
            raise TypeError
        return pin
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HomingError(f"{path} is damaged; delete it and fetch again") from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


_BY_HAND = "download it by other means and give it with --file FILE"

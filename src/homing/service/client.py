"""homing.Client: a collection that is served elsewhere, used as one that is here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any

from homing._places import Address, Place, is_taken, make_ready, place, write_whole
from homing.collection import Match
from homing.errors import PhotoError
from homing.perception import Quality
from homing.photo import SUFFIXES, Photo, format_name, gather, read_file
from homing.service.asking import Asking, Upload, of_each
from homing.service.told import (
    Comparison,
    Outcome,
    Reference,
    ReferenceInFull,
    ServiceInfo,
    comparison,
    in_full,
    known,
    page,
)

_PAGE = 500  # references of one answer


class Client:
    """A collection behind an address such as http://127.0.0.1:8321. Use it as a context manager, or close it.

    Whatever is refused is a HomingError of one line. A busy service is waited for. Threads may share a client.
    """

    def __init__(self, address: str, key: str | None = None, *, timeout: float = 600) -> None:
        """`key` is what `homing serve --new-key` printed; `timeout` the seconds that one answer may take."""
        self._service = Asking(address, key, timeout)

    def search(
        self,
        photo: str | Place | Photo,
        *,
        k: int = 10,
        false_matches: float | None = None,
        turned: bool = False,
    ) -> list[Match]:
        """The nearest references of one photo, as `Collection.search` gives them; a match's photo is its name."""
        query = {"k": k, "false_matches": false_matches, "turned": turned}
        (matches,) = self._found(query, [Upload.of(photo)])
        if isinstance(matches, PhotoError):
            raise matches
        return matches

    def search_each(
        self,
        photos: Iterable[str | Place | Photo],
        *,
        k: int = 10,
        false_matches: float | None = None,
        turned: bool = False,
    ) -> Iterator[list[Match] | PhotoError]:
        """The matches of each photo, in order, or why it could not be searched for; many are sent together."""
        query = {"k": k, "false_matches": false_matches, "turned": turned}
        return of_each(photos, partial(self._found, query))

    def add(self, photos: str | Place | Iterable[str | Place]) -> list[Outcome]:
        """Add photos and folders of photos as references, which are on the service's disk by then.

        One that fails does not keep the others out.
        """
        given = [photos] if isinstance(photos, str | Path | Address) else list(photos)
        paths = [found.path for found in gather(given)]
        return [
            _failed(path, outcome) if isinstance(outcome, PhotoError) else outcome
            for path, outcome in zip(paths, of_each(paths, self._added), strict=True)
        ]

    def activate(
        self,
        photo: str | Place | Photo,
        out: str | Place,
        *,
        recipe: str = "homing",
        psnr: float | None = None,
        format: str | None = None,
    ) -> Outcome:
        """Add a photo, have it activated, and write what may be released into the folder `out`, under its name.

        A file there is not written over, unless it is the same one.
        """
        folder = place(out)
        suffix = SUFFIXES[format_name(format)] if format else None
        make_ready(folder)
        given = place(photo.name) if isinstance(photo, Photo) else place(photo)
        name = Path(given.name)
        target = folder / (name.with_suffix(suffix) if suffix else name)
        try:
            upload = Upload.of(photo)
            values = {"recipe": recipe, "psnr": psnr, "format": format}
            answer = self._service.ask("POST", "/v1/activate", files=[("photo", upload)], values=values)
            _write(target, answer.content, upload)
        except PhotoError as error:
            return _failed(given, error)
        return self._service.read(answer, lambda: _released(upload, target, answer.headers))

    def photos(self, name: str = "") -> Iterator[Reference]:
        """All references, newest first, or those whose file names hold `name`."""
        after: int | None = None
        while True:
            query = {"after": after, "limit": _PAGE, "name": name or None}
            found, more = self._service.told("GET", "/v1/photos", page, query=query)
            yield from found
            if not more:
                return
            after = found[-1].id

    def photo(self, id: int) -> ReferenceInFull:
        """One reference, with what was released of it; GoneError if there is none."""
        return self._service.told("GET", f"/v1/photos/{id:d}", in_full)

    def remove(self, id: int) -> None:
        """Remove a reference, and what the service keeps of it, for good; GoneError if there is none."""
        self._service.ask("DELETE", f"/v1/photos/{id:d}")

    def compare(self, first: str | Place | Photo, second: str | Place | Photo) -> Comparison:
        """How far two photos lie apart, and pictures of the two; neither is kept."""
        files = [("first", Upload.of(first)), ("second", Upload.of(second))]
        return self._service.told("POST", "/v1/compare", comparison, files=files)

    def info(self) -> ServiceInfo:
        """What the collection holds."""
        return self._service.told("GET", "/v1/info", partial(known, ServiceInfo))

    def close(self) -> None:
        """Let go of the connections."""
        self._service.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _found(self, query: Mapping[str, Any], uploads: Sequence[Upload]) -> list[list[Match] | PhotoError]:
        def read(told: Any) -> list[list[Match] | PhotoError]:
            if len(uploads) == 1:
                return [_matches(told)]
            return [one(*pair) for pair in zip(uploads, told["results"], strict=True)]

        def one(upload: Upload, told: Any) -> list[Match] | PhotoError:
            problem = told.get("problem")
            if problem is None:
                return _matches(told)
            if problem["status"] == HTTPStatus.TOO_MANY_REQUESTS:  # for this one there was no room just then
                return self._found(query, [upload])[0]
            return PhotoError(upload.line(problem["detail"]))

        files = [("photo", upload) for upload in uploads]
        return self._service.told("POST", "/v1/search", read, files=files, query=query)

    def _added(self, uploads: Sequence[Upload]) -> list[Outcome]:
        def read(told: Any) -> list[Outcome]:
            return [_outcome(*pair) for pair in zip(uploads, told["outcomes"], strict=True)]

        return self._service.told("POST", "/v1/photos", read, files=[("photo", upload) for upload in uploads])


def _matches(told: Any) -> list[Match]:
    return [known(Match, each) for each in told["matches"]]


def _outcome(upload: Upload, told: Any) -> Outcome:
    reason = upload.line(told["problem"]) if told["problem"] else None
    return Outcome(photo=upload.photo, id=told["id"], state=told["state"], reason=reason)


def _released(upload: Upload, target: Place, told: Mapping[str, str]) -> Outcome:
    reason, psnr = told.get("X-Homing-Reason"), told.get("X-Homing-PSNR")
    quality = Quality(
        math.inf if psnr is None else float(psnr), float(told["X-Homing-SSIM"]), float(told["X-Homing-Linf"])
    )
    said = {"id": int(told["X-Homing-Id"]), "state": told["X-Homing-State"], **vars(quality)}
    line = upload.line(reason) if reason else None
    return known(Outcome, {"photo": upload.photo, "released": target, "reason": line, **said})


def _failed(photo: Place, error: PhotoError) -> Outcome:
    return Outcome(photo=photo, state="failed", reason=str(error))


def _write(target: Place, data: bytes, upload: Upload) -> None:
    try:
        if is_taken(target):
            if read_file(target) == data:
                return
            raise PhotoError(upload.line(f"{target} exists and is another file; move it away"))
        write_whole(target, data, new=True)
    except OSError as error:
        raise PhotoError(upload.line(f"cannot write {target}: {error.strerror}")) from error

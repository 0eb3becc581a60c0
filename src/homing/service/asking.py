"""How a client asks a service: photos as uploads, patience where it is busy, one line for whatever goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from homing._extras import load_extra
from homing._places import Place, place
from homing.errors import BusyError, GoneError, HomingError, PhotoError, TooLargeError, UnsupportedError
from homing.photo import Photo, read_file

if TYPE_CHECKING:
    import httpx

Answer = TypeVar("Answer")
Files = Sequence[tuple[str, "Sent"]]

_TIMES = 10  # that a busy service is asked again
_LONGEST = 60  # seconds that are waited before it is, whatever it says
_TOGETHER, _BYTES = 32, 100_000_000  # photos of one request: what any service takes at once
_KINDS: dict[int, type[HomingError]] = {
    HTTPStatus.BAD_REQUEST: PhotoError,
    HTTPStatus.NOT_FOUND: GoneError,
    HTTPStatus.CONFLICT: BusyError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TooLargeError,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: UnsupportedError,
}


@dataclass(frozen=True, eq=False)
class Sent:
    """A photo's file as it is sent, and what its user calls it."""

    photo: Place
    data: bytes

    @classmethod
    def of(cls, photo: str | Place | Photo) -> Sent:
        """The file at a path or an address, or that of a photo; one whose pixels were moved is written anew."""
        if not isinstance(photo, Photo):
            return cls(place(photo), read_file(place(photo)))
        as_read = np.array_equal(Photo.decode(photo.data, photo.name).pixels, photo.pixels)
        return cls(place(photo.name), photo.data if as_read else photo.encode())

    @property
    def name(self) -> str:
        """What the service knows it by: the last part of its path."""
        return self.photo.name

    def line(self, problem: str) -> str:
        """What is said of it, under the name that its user knows."""
        return f"{self.photo}: {problem.removeprefix(f'{self.name}: ')}"


class Asking:
    """A connection to one service."""

    def __init__(self, address: str, key: str | None, timeout: float) -> None:
        self._httpx: Any = load_extra("httpx", extra="client")
        if not address.startswith(("http://", "https://")):
            raise HomingError(f"the address of a service begins with http:// or https://, got {address!r}")
        if key is not None and not (key.isascii() and key.isprintable()):
            raise HomingError("a key is plain text without accents or line ends")
        self._address = address
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            self._client: httpx.Client = self._httpx.Client(base_url=address, headers=headers, timeout=timeout)
        except self._httpx.InvalidURL as error:
            raise HomingError(f"{address!r} is no address: {error}") from error

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        files: Files = (),
        values: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """What is answered. While the service is busy it is waited for, as long as it says, so many times."""
        parts = [(field, (sent.name, sent.data)) for field, sent in files]
        for left in reversed(range(_TIMES + 1)):
            try:
                answer = self._client.request(
                    method, path, files=parts or None, data=_said(values), params=_said(query)
                )
            except self._httpx.HTTPError as error:
                raise HomingError(f"{self._address} cannot be reached: {error or type(error).__name__}") from error
            seconds = answer.headers.get("retry-after", "")
            if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS or not seconds.isdecimal() or not left:
                break
            time.sleep(min(int(seconds), _LONGEST))
        if not answer.is_success:
            raise self._problem(answer, files)
        return answer

    def told(self, method: str, path: str, read: Callable[[Any], Answer], **options: Any) -> Answer:
        """What is answered as JSON, read by this function."""
        answer = self.ask(method, path, **options)
        return self.read(answer, lambda: read(answer.json()))

    def read(self, answer: httpx.Response, read: Callable[[], Answer]) -> Answer:
        """What is made of an answer, if it is one of a service as this."""
        try:
            return read()
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            line = f"{self._address} does not answer {answer.url.path} as homing serve does"
            raise HomingError(line) from error

    def _problem(self, answer: httpx.Response, files: Files) -> HomingError:
        if not answer.headers.get("content-type", "").startswith("application/problem+json"):
            return HomingError(
                f"{self._address} answers {answer.status_code} {answer.reason_phrase} to {answer.url.path}"
            )
        line = str(answer.json()["detail"])
        about = next((sent for _, sent in files if line.startswith(f"{sent.name}: ")), None)
        kind = _KINDS.get(answer.status_code, HomingError if about is None else PhotoError)
        return kind(line if about is None else about.line(line))


def of_each(
    photos: Iterable[str | Place | Photo],
    ask: Callable[[Sequence[Sent]], Sequence[Answer]],
    *,
    together: int = _TOGETHER,
) -> Iterator[Answer | PhotoError]:
    """What comes of each photo, in order. Several are asked for together; where that is refused, each by itself."""
    for parcel in _parcels(photos, together):
        answers = iter(_asked([each for each in parcel if isinstance(each, Sent)], ask))
        yield from (next(answers) if isinstance(each, Sent) else each for each in parcel)


def _asked(parcel: Sequence[Sent], ask: Callable[[Sequence[Sent]], Sequence[Answer]]) -> Sequence[Answer | PhotoError]:
    try:
        return ask(parcel) if parcel else []
    except PhotoError as error:
        if len(parcel) == 1:
            return [error]
        return [answer for sent in parcel for answer in _asked([sent], ask)]


def _parcels(photos: Iterable[str | Place | Photo], most: int) -> Iterator[list[Sent | PhotoError]]:
    """Photos as they go together into one request, and why some cannot be read."""
    parcel: list[Sent | PhotoError] = []
    held = 0
    for photo in photos:
        try:
            sent: Sent | PhotoError = Sent.of(photo)
        except PhotoError as error:
            sent = error
        size = len(sent.data) if isinstance(sent, Sent) else 0
        if parcel and (len(parcel) == most or held + size > _BYTES):
            yield parcel
            parcel, held = [], 0
        parcel.append(sent)
        held += size
    if parcel:
        yield parcel


def _said(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was asked for; the service knows the rest by itself."""
    return {name: value for name, value in (values or {}).items() if value is not None}

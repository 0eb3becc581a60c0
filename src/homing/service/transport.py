"""HTTP transport of the client: uploads, retries while the service is busy, JSON, errors of one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from http import HTTPStatus
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from homing._imports import load_extra
from homing._io.paths import Location
from homing.errors import HomingError, PhotoError
from homing.photo import MemoryPhoto, read_file
from homing.service.schemas import STATUS_OF

if TYPE_CHECKING:
    import httpx

Result = TypeVar("Result")

_MAX_RETRIES = 10  # of a request to a busy service
_MAX_WAIT = 60  # seconds between retries at most, whatever Retry-After says
_BATCH_PHOTOS, _BATCH_BYTES = 32, 100_000_000  # per request: below the default limits of a service
_ERROR_TYPES = {HTTPStatus.BAD_REQUEST: PhotoError} | {status: kind for kind, status in STATUS_OF.items()}


@dataclass(frozen=True, eq=False)
class OutgoingPhoto:
    """The file of a photo to send in a field of a form, and the photo that the user gave."""

    photo: Location | MemoryPhoto
    data: bytes
    field: str

    @classmethod
    def load(cls, photo: Location | MemoryPhoto, field: str = "photo") -> OutgoingPhoto:
        """Read the file of a photo."""
        return cls(photo, photo.data if isinstance(photo, MemoryPhoto) else read_file(photo), field)

    @property
    def name(self) -> str:
        """The file name, under which the service knows it."""
        return self.photo.name

    def message(self, problem: str) -> str:
        """A message of the service, with the user's path in front instead of the file name."""
        return f"{self.photo}: {problem.removeprefix(f'{self.name}: ')}"


class Transport:
    """A connection to one service."""

    def __init__(self, address: str, key: str | None, timeout: float) -> None:
        self._httpx: Any = load_extra("httpx", extra="client")
        if not address.startswith(("http://", "https://")):
            raise HomingError(f"the address of a service must begin with http:// or https://, got {address!r}")
        if key is not None and not (key.isascii() and key.isprintable()):
            raise HomingError("a key consists of printable ASCII characters")
        self._address = address
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            self._client: httpx.Client = self._httpx.Client(base_url=address, headers=headers, timeout=timeout)
        except self._httpx.InvalidURL as error:
            raise HomingError(f"{address!r} is not a valid address: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        photos: Sequence[OutgoingPhoto] = (),
        values: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Send a request and return its response. Retries while the service is busy."""
        files = [(each.field, (each.name, each.data)) for each in photos] or None
        for left in reversed(range(_MAX_RETRIES + 1)):
            try:
                response = self._client.request(
                    method, path, files=files, data=_drop_none(values), params=_drop_none(query)
                )
            except self._httpx.HTTPError as error:
                raise HomingError(f"{self._address} cannot be reached: {error or type(error).__name__}") from error
            seconds = response.headers.get("retry-after", "")
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS or not seconds.isdecimal() or not left:
                break
            time.sleep(min(int(seconds), _MAX_WAIT))
        if not response.is_success:
            raise self._to_error(response, photos)
        return response

    def request_json(self, method: str, path: str, schema: type[Result], **options: Any) -> Result:
        """Send a request and read its JSON response."""
        response = self.request(method, path, **options)
        with self.reading(path):
            return from_json(schema, response.json())

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Raises HomingError if what is read inside is not the response of a homing service."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            line = f"{self._address} does not answer {path} like homing serve; is it another version?"
            raise HomingError(line) from error

    def _to_error(self, response: httpx.Response, photos: Sequence[OutgoingPhoto]) -> HomingError:
        if not response.headers.get("content-type", "").startswith("application/problem+json"):
            return HomingError(
                f"{self._address} answers {response.status_code} {response.reason_phrase} to {response.url.path}"
            )
        line = str(response.json()["detail"])
        about = next((each for each in photos if line.startswith(f"{each.name}: ")), None)
        kind = _ERROR_TYPES.get(response.status_code, HomingError if about is None else PhotoError)
        return kind(line if about is None else about.message(line))


def send_in_batches(
    photos: Iterable[Location | MemoryPhoto],
    send: Callable[[Sequence[OutgoingPhoto]], Sequence[Result]],
    *,
    batch_size: int = _BATCH_PHOTOS,
) -> Iterator[Result | PhotoError]:
    """Send photos in batches and yield results in order; the result of a photo that cannot be read is its error."""
    batch: list[OutgoingPhoto] = []
    for photo in photos:
        try:
            outgoing = OutgoingPhoto.load(photo)
        except PhotoError as error:
            yield from _send_batch(batch, send)
            yield error
            batch = []
            continue
        batch_bytes = sum(len(each.data) for each in batch)
        if len(batch) == batch_size or batch_bytes + len(outgoing.data) > _BATCH_BYTES:
            yield from _send_batch(batch, send)
            batch = []
        batch.append(outgoing)
    yield from _send_batch(batch, send)


def _send_batch(
    batch: Sequence[OutgoingPhoto], send: Callable[[Sequence[OutgoingPhoto]], Sequence[Result]]
) -> Sequence[Result | PhotoError]:
    """Send one request, or one for each photo if it is refused."""
    try:
        return send(batch) if batch else []
    except PhotoError as error:
        if len(batch) == 1:
            return [error]
        return [result for outgoing in batch for result in _send_batch([outgoing], send)]


def from_json(schema: type[Result], data: Any) -> Result:
    """Build a dataclass from JSON. Unknown fields are ignored, so that newer services can add some."""
    assert is_dataclass(schema)
    hints = get_type_hints(schema)
    names = [each.name for each in fields(schema) if each.name in data]
    return schema(**{name: _convert(hints[name], data[name]) for name in names})


def _convert(hint: Any, value: Any) -> Any:
    """Convert a value of a field: lists, dataclasses and times; others are as in JSON."""
    members = [each for each in get_args(hint) if each is not NoneType]
    if value is None:
        return None
    if isinstance(value, list):
        return [_convert(members[0], each) for each in value]
    if isinstance(hint, UnionType):  # X | None, or several dataclasses: the first whose fields are all there
        fitting = [each for each in members if is_dataclass(each) and {own.name for own in fields(each)} <= set(value)]
        hint = (fitting or members)[0]
    if is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, value)
    return datetime.fromisoformat(value.replace("Z", "+00:00")) if hint is datetime else value  # for Python 3.10


def _drop_none(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values without those that are None, for which the service has defaults."""
    return {name: value for name, value in (values or {}).items() if value is not None}

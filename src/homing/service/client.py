"""homing.Client: a collection that is served elsewhere, used as one that is here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any

from homing._io.paths import Location, location, path_exists, prepare_output_location, write_file
from homing.collection import SearchResult
from homing.collection._targets import targets
from homing.collection.collection import ReferenceSelector
from homing.errors import HomingError, NotFoundError, PhotoError
from homing.photo import Photo, find_photos, format_name, read_file
from homing.service.client_models import (
    Comparison,
    Reference,
    ReferenceDetail,
    RemoteOutcome,
    ServiceInfo,
    parse_added,
    parse_comparison,
    parse_fields,
    parse_page,
    parse_reference,
    parse_released,
    parse_result,
)
from homing.service.transport import OutgoingPhoto, Transport, send_in_batches

OutcomeCallback = Callable[[RemoteOutcome], None]

_PAGE_SIZE = 500  # references of one response


PhotoPaths = str | Location | Iterable[str | Location]


class Client:
    """A collection behind an address such as http://127.0.0.1:8321. Use it as a context manager, or close it.

    Whatever is refused is a HomingError of one line. A busy service is waited for. Threads may share a client.
    """

    def __init__(self, address: str, key: str | None = None, *, timeout: float = 600) -> None:
        """`key` is what `homing serve --new-key` printed; `timeout` the seconds that one answer may take."""
        self._transport = Transport(address, key, timeout)

    def search(
        self,
        photo: str | Location | Photo,
        *,
        k: int = 10,
        max_false_match: float | None = None,
        variants: bool = False,
    ) -> SearchResult:
        """The nearest references of one photo, as from `Collection.search`; the `photo` of a match is its file name."""
        query = {"k": k, "max_false_match": max_false_match, "variants": variants}
        (result,) = self._search_batch(query, [OutgoingPhoto.from_photo(photo)])
        if isinstance(result, PhotoError):
            raise result
        return result

    def search_each(
        self,
        photos: Iterable[str | Location | Photo],
        *,
        k: int = 10,
        max_false_match: float | None = None,
        variants: bool = False,
    ) -> Iterator[SearchResult | PhotoError]:
        """The result of each photo, in order, or the error of a photo that failed. Photos are sent in batches."""
        query = {"k": k, "max_false_match": max_false_match, "variants": variants}
        return send_in_batches(photos, partial(self._search_batch, query))

    def add(self, photos: PhotoPaths, *, report: OutcomeCallback | None = None) -> list[RemoteOutcome]:
        """Add photos and folders of photos as references, which are on the service's disk by then.

        `report` is called with each outcome as it comes. One that fails does not keep the others out; where the service
        is lost on the way, those that are left fail.
        """
        paths = [found.path for found in find_photos(_as_list(photos))]
        return _collect_outcomes(paths, send_in_batches(paths, self._add_batch), report)

    def activate(
        self,
        photos: PhotoPaths,
        out: str | Location,
        *,
        recipe: str = "homing",
        psnr: float | None = None,
        format: str | None = None,
        graphics: bool = False,
        report: OutcomeCallback | None = None,
    ) -> list[RemoteOutcome]:
        """Add photos and folders of photos, have them activated, and write what may be released into the folder `out`.

        Released files have the names they have in the folders given. A file there is not written over, unless it is the
        same one. Graphics of few colors are released unchanged unless `graphics` is true. `report`, and what fails, are
        as in `add`.
        """
        values = {"recipe": recipe, "psnr": psnr, "format": format, "graphics": "true" if graphics else None}
        folder = location(out)
        wanted = targets(find_photos(_as_list(photos)), folder, format_name(format) if format else None)
        prepare_output_location(folder)
        target_of = {path: target for target, path in wanted.items()}
        return _collect_outcomes(
            list(target_of),
            send_in_batches(target_of, partial(self._activate_batch, values, target_of), batch_size=1),
            report,
        )

    def photos(self, name: str = "") -> Iterator[Reference]:
        """All references, newest first, or those whose file names hold `name`."""
        after: int | None = None
        while True:
            query = {"after": after, "limit": _PAGE_SIZE, "name": name or None}
            found, more = self._transport.request_json("GET", "/v1/photos", parse_page, query=query)
            yield from found
            if not more:
                return
            after = found[-1].id

    def photo(self, id: int) -> ReferenceDetail:
        """One reference, with what was released of it; NotFoundError if there is none."""
        return self._transport.request_json("GET", f"/v1/photos/{id:d}", parse_reference)

    def remove(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> list[RemoteOutcome]:
        """Remove references, and what the service keeps of them, for good: by ids, or by files that were added.

        A file, or one of a folder, means the reference of its name that has the same bytes. What names none fails.
        """
        given = [what] if isinstance(what, ReferenceSelector) else list(what)
        files = [found.path for found in find_photos(each for each in given if not isinstance(each, int))]
        named = [*dict.fromkeys(each for each in given if isinstance(each, int)), *files]
        return [self._remove_one(each) for each in named]

    def compare(self, first: str | Location | Photo, second: str | Location | Photo) -> Comparison:
        """How far two photos lie apart, and pictures of the two; neither is kept."""
        files = [("first", OutgoingPhoto.from_photo(first)), ("second", OutgoingPhoto.from_photo(second))]
        return self._transport.request_json("POST", "/v1/compare", parse_comparison, files=files)

    def info(self) -> ServiceInfo:
        """What the collection holds."""
        return self._transport.request_json("GET", "/v1/info", partial(parse_fields, ServiceInfo))

    def close(self) -> None:
        """Let go of the connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _search_batch(
        self, query: Mapping[str, Any], batch: Sequence[OutgoingPhoto]
    ) -> list[SearchResult | PhotoError]:
        def parse(data: Any) -> list[SearchResult | PhotoError]:
            if len(batch) == 1:
                return [parse_result(data)]
            return [one(*pair) for pair in zip(batch, data["results"], strict=True)]

        def one(outgoing: OutgoingPhoto, data: Any) -> SearchResult | PhotoError:
            problem = data.get("problem")
            if problem is None:
                return parse_result(data)
            if problem["status"] == HTTPStatus.TOO_MANY_REQUESTS:  # the queue was full for this photo
                return self._search_batch(query, [outgoing])[0]
            return PhotoError(outgoing.message(problem["detail"]))

        files = [("photo", outgoing) for outgoing in batch]
        return self._transport.request_json("POST", "/v1/search", parse, files=files, query=query)

    def _add_batch(self, batch: Sequence[OutgoingPhoto]) -> list[RemoteOutcome]:
        def parse(data: Any) -> list[RemoteOutcome]:
            return [parse_added(*pair) for pair in zip(batch, data["outcomes"], strict=True)]

        return self._transport.request_json(
            "POST", "/v1/photos", parse, files=[("photo", outgoing) for outgoing in batch]
        )

    def _activate_batch(
        self, values: Mapping[str, Any], target_of: Mapping[Location, Location], batch: Sequence[OutgoingPhoto]
    ) -> list[RemoteOutcome]:
        """What came of one photo: its file comes with its quality, whatever is released of it meanwhile."""
        (outgoing,) = batch
        target = target_of[outgoing.photo]
        response = self._transport.request("POST", "/v1/activate", files=[("photo", outgoing)], values=values)
        outcome = self._transport.parse(response, lambda: parse_released(outgoing, target, response.headers))
        _write_released(target, response.content, outgoing)
        return [outcome]

    def _remove_one(self, what: int | Location) -> RemoteOutcome:
        try:
            one = self.photo(what) if isinstance(what, int) else self._find_by_file(what)
            self._transport.request("DELETE", f"/v1/photos/{one.id:d}")
        except NotFoundError:
            line = "no reference has this id" if isinstance(what, int) else "no reference of this name has its bytes"
            return RemoteOutcome(photo=location(str(what)), state="failed", reason=f"{what}: {line}")
        except PhotoError as error:
            return RemoteOutcome(photo=location(str(what)), state="failed", reason=str(error))
        return RemoteOutcome(photo=location(one.photo) if isinstance(what, int) else what, id=one.id, state="removed")

    def _find_by_file(self, path: Location) -> Reference:
        sha256 = hashlib.sha256(read_file(path)).hexdigest()
        for each in self.photos(name=path.name):
            if each.sha256 == sha256:
                return each
        raise NotFoundError(f"{path} is the file of no reference")


def _as_list(photos: PhotoPaths) -> list[str | Location]:
    return [photos] if isinstance(photos, str | Location) else list(photos)


def _collect_outcomes(
    paths: Sequence[Location], came: Iterable[RemoteOutcome | PhotoError], report: OutcomeCallback | None
) -> list[RemoteOutcome]:
    """The outcomes of all paths, each reported as it comes."""
    outcomes = []
    for path, each in zip(paths, _fail_rest(paths, came), strict=True):
        outcome = RemoteOutcome(photo=path, state="failed", reason=str(each)) if isinstance(each, PhotoError) else each
        if report is not None:
            report(outcome)
        outcomes.append(outcome)
    return outcomes


def _fail_rest(
    paths: Sequence[Location], came: Iterable[RemoteOutcome | PhotoError]
) -> Iterator[RemoteOutcome | PhotoError]:
    """What came; where the service is lost after it did something, that is why the photos that are left fail."""
    seen = done = 0
    try:
        for each in came:
            seen += 1
            done += isinstance(each, RemoteOutcome)
            yield each
    except HomingError as error:
        if not done:
            raise
        yield from (PhotoError(f"{path}: {error}") for path in paths[seen:])


def _write_released(target: Location, data: bytes, outgoing: OutgoingPhoto) -> None:
    try:
        if path_exists(target):
            if read_file(target) == data:
                return
            raise PhotoError(outgoing.message(f"{target} exists and is another file; move it away"))
        write_file(target, data, new=True)
    except OSError as error:
        raise PhotoError(outgoing.message(f"cannot write {target}: {error.strerror}")) from error

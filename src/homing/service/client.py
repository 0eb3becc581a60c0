"""homing.Client: a collection behind an HTTP service, used like a local one."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, overload

from homing._io.paths import Location, location, path_exists, prepare_output_location, write_file
from homing.collection import Outcome, Reference, SearchResult
from homing.collection.collection import ReferenceSelector
from homing.collection.references import ReferenceQuery, State
from homing.collection.release import targets
from homing.errors import HomingError, NotFoundError, PhotoError
from homing.perception import Quality
from homing.photo import (
    FoundPhoto,
    MemoryPhoto,
    PhotoLike,
    PhotosLike,
    as_photo,
    as_photos,
    find_photos,
    format_name,
    read_file,
)
from homing.photo.inputs import is_one_photo
from homing.service import schemas
from homing.service.transport import OutgoingPhoto, Transport, send_in_batches

_PAGE_SIZE = 500  # references of one response


@dataclass(frozen=True, kw_only=True)
class RemoteOutcome(Outcome):
    """Outcome of one photo that was sent, with the id of its reference."""

    id: int | None = None


OutcomeCallback = Callable[[RemoteOutcome], None]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two photos compared; `pictures` holds image files by name."""

    same_size: bool
    quality: Quality | None
    distance: float
    false_match_probability: float
    aligned: bool
    pictures: dict[str, bytes] = field(repr=False)


class Client:
    """A collection behind an address such as http://127.0.0.1:8321. Use it as a context manager, or close it.

    Errors are HomingErrors of one line. Requests to a busy service are retried. Threads may share a client.
    """

    def __init__(self, address: str, key: str | None = None, *, timeout: float = 600) -> None:
        """`key` is printed by `homing serve --new-key`; `timeout` is that of one response, in seconds."""
        self._transport = Transport(address, key, timeout)

    @overload
    def search(
        self,
        photos: list[Any] | tuple[Any, ...] | Generator[Any, Any, Any] | Mapping[str, PhotoLike],
        *,
        k: int = ...,
        max_false_match: float | None = ...,
        variants: bool = ...,
    ) -> list[SearchResult]: ...

    @overload
    def search(
        self, photos: PhotoLike, *, k: int = ..., max_false_match: float | None = ..., variants: bool = ...
    ) -> SearchResult: ...

    def search(
        self, photos: PhotosLike, *, k: int = 10, max_false_match: float | None = None, variants: bool = False
    ) -> SearchResult | list[SearchResult]:
        """Search for one photo, or for several (returns a list), as `Collection.search` does.

        The `photo` of a match is its file name. Several photos are sent in batches.
        """
        query = {"k": k, "max_false_match": max_false_match, "variants": variants}
        results = []
        for result in send_in_batches(as_photos(photos), partial(self._search_batch, query)):
            if isinstance(result, PhotoError):
                raise result
            results.append(result)
        return results[0] if is_one_photo(photos) else results

    def add(self, photos: PhotosLike, *, on_outcome: OutcomeCallback | None = None) -> list[RemoteOutcome]:
        """Add photos and folders of photos as references, which are on the service's disk by then.

        `on_outcome` is called with each outcome as it comes. A photo that fails does not affect the others. If the
        service is lost on the way, the remaining photos fail.
        """
        found = [each.path for each in _find_photos(photos)]
        return _collect_outcomes(found, send_in_batches(found, self._add_batch), on_outcome)

    def activate(
        self,
        photos: PhotosLike,
        out: str | Location,
        *,
        recipe: str = "homing",
        psnr: float | None = None,
        format: str | None = None,
        graphics: bool = False,
        on_outcome: OutcomeCallback | None = None,
    ) -> list[RemoteOutcome]:
        """Add photos and folders of photos, activate them, and write the files to release into the folder `out`.

        Released files keep their names relative to the given folders. Other files there are not overwritten. Graphics
        are released unchanged unless `graphics` is true. `on_outcome` and failures are as in `add`.
        """
        if not isinstance(recipe, str):
            raise HomingError(f"a service takes a recipe by name only, such as 'homing', got {type(recipe).__name__}")
        values = {"recipe": recipe, "psnr": psnr, "format": format, "graphics": "true" if graphics else None}
        folder = location(out)
        wanted = targets(_find_photos(photos), folder, format_name(format) if format else None)
        prepare_output_location(folder)
        target_of = {photo: target for target, photo in wanted.items()}
        return _collect_outcomes(
            list(target_of),
            send_in_batches(target_of, partial(self._activate_batch, values, target_of), batch_size=1),
            on_outcome,
        )

    def references(
        self, *, state: State | None = None, name_contains: str | None = None, limit: int | None = None
    ) -> Iterator[Reference]:
        """Iterate over the references, newest first: all, or those with a state or with a text in their file name.

        Yields at most `limit` references. Their paths are file names. Unlike `Collection.references`, which begins with
        the oldest, it begins with the newest, as the service does, and has no `after`: pages are fetched as needed.
        """
        wanted, after, given = ReferenceQuery(state=state, name_contains=name_contains, limit=limit), None, 0
        while size := wanted.page_size(given, _PAGE_SIZE):
            query = {"after": after, "limit": size, "name": name_contains or None, "state": state}
            page = self._transport.request_json("GET", "/v1/photos", schemas.ReferencePage, query=query)
            yield from (each.to_reference() for each in page.photos)
            if page.next is None:
                return
            after, given = page.photos[-1].id, given + len(page.photos)

    def reference(self, id: int) -> Reference:
        """One reference with its releases. Raises NotFoundError if there is none."""
        return self._transport.request_json("GET", f"/v1/photos/{id:d}", schemas.Reference).to_reference()

    def remove(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> list[RemoteOutcome]:
        """Remove references and their stored files, by id or by the files that were added.

        A file, also one in a folder, selects the reference that has its name and its bytes. Others fail.
        """
        given = [what] if isinstance(what, ReferenceSelector) else list(what)
        files = [found.path for found in find_photos(each for each in given if not isinstance(each, int))]
        named = [*dict.fromkeys(each for each in given if isinstance(each, int)), *files]
        return [self._remove_one(each) for each in named]

    def compare(self, first: PhotoLike, second: PhotoLike) -> Comparison:
        """Distance of two photos, and pictures of the two; neither is stored."""
        pair = [OutgoingPhoto.load(as_photo(each), field) for each, field in ((first, "first"), (second, "second"))]
        answer = self._transport.request_json("POST", "/v1/compare", schemas.Comparison, photos=pair)
        pictures = {name: base64.b64decode(url.partition("base64,")[2]) for name, url in answer.pictures.items()}
        return answer.to(Comparison, quality=answer.quality and answer.quality.to_quality(), pictures=pictures)

    def info(self) -> schemas.ServiceInfo:
        """A summary of the collection's contents."""
        return self._transport.request_json("GET", "/v1/info", schemas.ServiceInfo)

    def close(self) -> None:
        """Close the connections."""
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
        search = partial(self._transport.request_json, "POST", "/v1/search", photos=batch, query=query)
        if len(batch) == 1:
            return [search(schemas.SearchResponse).to_result()]
        several = search(schemas.BatchSearchResponse)
        with self._transport.reading("/v1/search"):
            return [self._one_result(query, *pair) for pair in zip(batch, several.results, strict=True)]

    def _one_result(
        self, query: Mapping[str, Any], outgoing: OutgoingPhoto, found: schemas.QueryResult | schemas.QueryProblem
    ) -> SearchResult | PhotoError:
        if isinstance(found, schemas.QueryResult):
            return found.to_result()
        if found.problem.status == HTTPStatus.TOO_MANY_REQUESTS:  # the queue was full for this photo
            return self._search_batch(query, [outgoing])[0]
        return PhotoError(outgoing.message(found.problem.detail))

    def _add_batch(self, batch: Sequence[OutgoingPhoto]) -> list[RemoteOutcome]:
        answer = self._transport.request_json("POST", "/v1/photos", schemas.AddResponse, photos=batch)
        with self._transport.reading("/v1/photos"):
            return [
                RemoteOutcome(
                    photo=str(outgoing.photo),
                    id=each.id,
                    state=each.state,
                    reason=each.problem and each.problem.removeprefix(f"{outgoing.name}: "),
                )
                for outgoing, each in zip(batch, answer.outcomes, strict=True)
            ]

    def _activate_batch(
        self,
        values: Mapping[str, Any],
        target_of: Mapping[Location | MemoryPhoto, Location],
        batch: Sequence[OutgoingPhoto],
    ) -> list[RemoteOutcome]:
        """Activate one photo, and write the file of the response."""
        (outgoing,) = batch
        target = target_of[outgoing.photo]
        response = self._transport.request("POST", "/v1/activate", photos=batch, values=values)
        with self._transport.reading("/v1/activate"):
            headers = schemas.ReleaseHeaders.from_headers(response.headers)
        _write_released(target, response.content, outgoing)
        quality = schemas.Quality.of(headers).to_quality()
        return [headers.to(RemoteOutcome, photo=str(outgoing.photo), released=str(target), **vars(quality))]

    def _remove_one(self, what: int | Location) -> RemoteOutcome:
        try:
            one = self.reference(what) if isinstance(what, int) else self._find_by_file(what)
            self._transport.request("DELETE", f"/v1/photos/{one.id:d}")
        except NotFoundError:
            line = "no reference has this id" if isinstance(what, int) else "no reference of this name has its bytes"
            return RemoteOutcome(photo=str(what), state="failed", reason=line)
        except PhotoError as error:
            return _failed(what, error)
        return RemoteOutcome(photo=one.photo if isinstance(what, int) else str(what), id=one.id, state="removed")

    def _find_by_file(self, path: Location) -> Reference:
        sha256 = hashlib.sha256(read_file(path)).hexdigest()
        for each in self.references(name_contains=path.name):
            if each.sha256 == sha256:
                return each
        raise NotFoundError(f"{path} is the file of no reference")


def _find_photos(photos: PhotosLike) -> list[FoundPhoto[Location | MemoryPhoto]]:
    """The given photos, and those in the given folders."""
    given = as_photos(photos)
    in_memory = [FoundPhoto(each, Path(each.name)) for each in given if isinstance(each, MemoryPhoto)]
    return [*find_photos(each for each in given if not isinstance(each, MemoryPhoto)), *in_memory]


def _collect_outcomes(
    photos: Sequence[Location | MemoryPhoto],
    results: Iterator[RemoteOutcome | PhotoError],
    on_outcome: OutcomeCallback | None,
) -> list[RemoteOutcome]:
    """The outcomes of all photos, each reported as it comes.

    If the service is lost after it has processed some photos, the remaining ones fail.
    """
    outcomes: list[RemoteOutcome] = []
    lost: HomingError | None = None
    for photo in photos:
        try:
            result = PhotoError(f"{photo}: {lost}") if lost else next(results)
        except HomingError as error:
            if all(each.error is not None for each in outcomes):
                raise
            lost, result = error, PhotoError(f"{photo}: {error}")
        outcomes.append(_failed(photo, result) if isinstance(result, PhotoError) else result)
        if on_outcome is not None:
            on_outcome(outcomes[-1])
    return outcomes


def _failed(photo: int | Location | MemoryPhoto, error: PhotoError) -> RemoteOutcome:
    """The outcome of a photo that failed with an error."""
    return RemoteOutcome(photo=str(photo), state="failed", reason=str(error).removeprefix(f"{photo}: "), error=error)


def _write_released(target: Location, data: bytes, outgoing: OutgoingPhoto) -> None:
    try:
        if path_exists(target):
            if read_file(target) == data:
                return
            raise PhotoError(outgoing.message(f"{target} exists and is another file; move it away"))
        write_file(target, data, new=True)
    except OSError as error:
        raise PhotoError(outgoing.message(f"cannot write {target}: {error.strerror}")) from error

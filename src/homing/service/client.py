"""homing.Client: a collection that is served elsewhere, used as one that is here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any

from homing._places import Place, is_taken, make_ready, place, write_whole
from homing.collection import Match
from homing.collection._targets import targets
from homing.collection.collection import Paths, What
from homing.errors import GoneError, HomingError, PhotoError
from homing.photo import Photo, format_name, gather, read_file
from homing.service.asking import Asking, Sent, of_each
from homing.service.told import (
    Comparison,
    Outcome,
    Reference,
    ReferenceInFull,
    ServiceInfo,
    added,
    comparison,
    in_full,
    known,
    page,
    released,
)

Report = Callable[[Outcome], None]

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
        (matches,) = self._found(query, [Sent.of(photo)])
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

    def add(self, photos: Paths, *, report: Report | None = None) -> list[Outcome]:
        """Add photos and folders of photos as references, which are on the service's disk by then.

        `report` is called with each outcome as it comes. One that fails does not keep the others out; where the service
        is lost on the way, those that are left fail.
        """
        paths = [found.path for found in gather(_as_list(photos))]
        return _all(paths, of_each(paths, self._added), report)

    def activate(
        self,
        photos: Paths,
        out: str | Place,
        *,
        recipe: str = "homing",
        psnr: float | None = None,
        format: str | None = None,
        report: Report | None = None,
    ) -> list[Outcome]:
        """Add photos and folders of photos, have them activated, and write what may be released into the folder `out`.

        Released files have the names they have in the folders given. A file there is not written over, unless it is the
        same one. `report`, and what fails, are as in `add`.
        """
        folder, values = place(out), {"recipe": recipe, "psnr": psnr, "format": format}
        wanted = targets(gather(_as_list(photos)), folder, format_name(format) if format else None)
        make_ready(folder)
        target_of = {path: target for target, path in wanted.items()}
        return _all(
            list(target_of), of_each(target_of, partial(self._activated, values, target_of), together=1), report
        )

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

    def remove(self, what: What | Iterable[What]) -> list[Outcome]:
        """Remove references, and what the service keeps of them, for good: by ids, or by files that were added.

        A file, or one of a folder, means the reference of its name that has the same bytes. What names none fails.
        """
        given = [what] if isinstance(what, What) else list(what)
        files = [found.path for found in gather(each for each in given if not isinstance(each, int))]
        named = [*dict.fromkeys(each for each in given if isinstance(each, int)), *files]
        return [self._removed(each) for each in named]

    def compare(self, first: str | Place | Photo, second: str | Place | Photo) -> Comparison:
        """How far two photos lie apart, and pictures of the two; neither is kept."""
        files = [("first", Sent.of(first)), ("second", Sent.of(second))]
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

    def _found(self, query: Mapping[str, Any], parcel: Sequence[Sent]) -> list[list[Match] | PhotoError]:
        def read(told: Any) -> list[list[Match] | PhotoError]:
            if len(parcel) == 1:
                return [_matches(told)]
            return [one(*pair) for pair in zip(parcel, told["results"], strict=True)]

        def one(sent: Sent, told: Any) -> list[Match] | PhotoError:
            problem = told.get("problem")
            if problem is None:
                return _matches(told)
            if problem["status"] == HTTPStatus.TOO_MANY_REQUESTS:  # for this one there was no room just then
                return self._found(query, [sent])[0]
            return PhotoError(sent.line(problem["detail"]))

        files = [("photo", sent) for sent in parcel]
        return self._service.told("POST", "/v1/search", read, files=files, query=query)

    def _added(self, parcel: Sequence[Sent]) -> list[Outcome]:
        def read(told: Any) -> list[Outcome]:
            return [added(*pair) for pair in zip(parcel, told["outcomes"], strict=True)]

        return self._service.told("POST", "/v1/photos", read, files=[("photo", sent) for sent in parcel])

    def _activated(
        self, values: Mapping[str, Any], target_of: Mapping[Place, Place], parcel: Sequence[Sent]
    ) -> list[Outcome]:
        """What came of one photo: its file comes with its quality, whatever is released of it meanwhile."""
        (sent,) = parcel
        target = target_of[sent.photo]
        answer = self._service.ask("POST", "/v1/activate", files=[("photo", sent)], values=values)
        outcome = self._service.read(answer, lambda: released(sent, target, answer.headers))
        _write(target, answer.content, sent)
        return [outcome]

    def _removed(self, what: int | Place) -> Outcome:
        try:
            one = self.photo(what) if isinstance(what, int) else self._of_file(what)
            self._service.ask("DELETE", f"/v1/photos/{one.id:d}")
        except GoneError:
            line = "no reference has this id" if isinstance(what, int) else "no reference of this name has its bytes"
            return Outcome(photo=place(str(what)), state="failed", reason=f"{what}: {line}")
        except PhotoError as error:
            return Outcome(photo=place(str(what)), state="failed", reason=str(error))
        return Outcome(photo=place(one.photo) if isinstance(what, int) else what, id=one.id, state="removed")

    def _of_file(self, path: Place) -> Reference:
        sha256 = hashlib.sha256(read_file(path)).hexdigest()
        for each in self.photos(name=path.name):
            if each.sha256 == sha256:
                return each
        raise GoneError(f"{path} is the file of no reference")


def _as_list(photos: Paths) -> list[str | Place]:
    return [photos] if isinstance(photos, str | Place) else list(photos)


def _all(paths: Sequence[Place], came: Iterable[Outcome | PhotoError], report: Report | None) -> list[Outcome]:
    """The outcomes of all paths, each reported as it comes."""
    outcomes = []
    for path, each in zip(paths, _to_the_end(paths, came), strict=True):
        outcome = Outcome(photo=path, state="failed", reason=str(each)) if isinstance(each, PhotoError) else each
        if report is not None:
            report(outcome)
        outcomes.append(outcome)
    return outcomes


def _to_the_end(paths: Sequence[Place], came: Iterable[Outcome | PhotoError]) -> Iterator[Outcome | PhotoError]:
    """What came; where the service is lost after it did something, that is why the photos that are left fail."""
    told = done = 0
    try:
        for each in came:
            told += 1
            done += isinstance(each, Outcome)
            yield each
    except HomingError as error:
        if not done:
            raise
        yield from (PhotoError(f"{path}: {error}") for path in paths[told:])


def _matches(told: Any) -> list[Match]:
    return [known(Match, each) for each in told["matches"]]


def _write(target: Place, data: bytes, sent: Sent) -> None:
    try:
        if is_taken(target):
            if read_file(target) == data:
                return
            raise PhotoError(sent.line(f"{target} exists and is another file; move it away"))
        write_whole(target, data, new=True)
    except OSError as error:
        raise PhotoError(sent.line(f"cannot write {target}: {error.strerror}")) from error

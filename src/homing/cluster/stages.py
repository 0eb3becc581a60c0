"""What is done with the photos of a parcel: each stage gives what goes on to the next, and outcomes for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing._parallel import map_ahead
from homing._places import Place
from homing.activation.workers import File, network
from homing.codebooks import Codebook
from homing.collection import Outcome, adding, releasing
from homing.collection.adding import Adding, Described, Ready
from homing.collection.outcome import failed
from homing.collection.releasing import Releases, Task
from homing.errors import PhotoError
from homing.photo import Photo

_AT_ONCE = 16  # files of one task that are waited for
_PIXELS = 64 * 2**20  # bytes of decoded photos that travel together; the worker decodes the others


def read(paths: Sequence[Place], desk: Adding) -> list[adding.Read | Outcome]:
    """Files with their hashes, of photos that are new."""
    tried = list(map_ahead(adding.read, paths, threads=_AT_ONCE))
    photos = [photo for photo in tried if isinstance(photo, adding.Read)]
    known = desk.meet([(photo.path, photo.sha256) for photo in photos])
    told = [done or photo for photo, done in zip(photos, known, strict=True)]
    return [*told, *(photo for photo in tried if isinstance(photo, Outcome))]


def decode(photos: Sequence[adding.Read], network_name: str) -> list[Ready | Outcome]:
    """What the network sees of them."""
    extractor = network(network_name, "cpu")
    return [adding.decode(photo, lambda opened: extractor.resize(opened.view())) for photo in photos]


@dataclass(frozen=True)
class Describe:
    """Descriptors and codes, by the network that the codebook names."""

    codebook: Codebook
    device: str | None

    def __call__(self, photos: Sequence[Ready]) -> list[Described]:
        """Of a parcel."""
        extractor = network(self.codebook.extractor, self.device)
        self.codebook.check(extractor)
        return adding.describe_all(photos, extractor, self.codebook)


def read_tasks(tasks: Sequence[Task], desk: Releases) -> list[tuple[Task, File] | Outcome]:
    """The files of photos that are still to be released."""
    tried = list(map_ahead(releasing.read, tasks, threads=_AT_ONCE))
    photos = [photo for photo in tried if isinstance(photo, releasing.Read)]
    met = desk.meet([(photo.task, photo.sha256, photo.held) for photo in photos])
    told = [done or (task, photo.file) for photo, (task, done) in zip(photos, met, strict=True)]
    return [*told, *(photo for photo in tried if isinstance(photo, Outcome))]


def decode_tasks(items: Sequence[tuple[Task, File]]) -> list[tuple[Task, Photo | File] | Outcome]:
    """Photos, as many as travel well; the others as they are."""
    decoded: list[tuple[Task, Photo | File] | Outcome] = []
    size = 0
    for task, file in items:
        try:
            photo = Photo.decode(file.data, file.name) if size < _PIXELS else file
        except PhotoError as error:
            decoded.append(failed(task.path, error))
            continue
        size += photo.pixels.nbytes if isinstance(photo, Photo) else 0
        decoded.append((task, photo))
    return decoded

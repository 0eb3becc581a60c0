"""The stages of the cluster jobs: each returns items for the next stage, and outcomes of finished photos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homing._io.parallel import prefetch_map
from homing._io.paths import Location
from homing.activation.workers import EncodedPhoto, cached_extractor
from homing.codebooks import Codebook
from homing.collection import Outcome, add_steps, release_steps
from homing.collection.add_steps import DecodedPhoto, DescribedPhoto, PhotoAdder
from homing.collection.outcome import failed
from homing.collection.release_steps import ReleaseWriter, Task
from homing.errors import PhotoError
from homing.photo import Photo

_READ_THREADS = 16  # files read at once per task
_MAX_PIXEL_BYTES = 64 * 2**20  # bytes of decoded photos per batch; the worker decodes the rest


def read(paths: Sequence[Location], handler: PhotoAdder) -> list[add_steps.FileToAdd | Outcome]:
    """Read and hash files; known photos become outcomes."""
    tried = list(prefetch_map(add_steps.read, paths, threads=_READ_THREADS))
    photos = [photo for photo in tried if isinstance(photo, add_steps.FileToAdd)]
    known = handler.lookup_existing([(photo.path, photo.sha256) for photo in photos])
    merged = [done or photo for photo, done in zip(photos, known, strict=True)]
    return [*merged, *(photo for photo in tried if isinstance(photo, Outcome))]


def decode(photos: Sequence[add_steps.FileToAdd], network_name: str) -> list[DecodedPhoto | Outcome]:
    """Decode photos to network inputs."""
    extractor = cached_extractor(network_name, "cpu")
    return [add_steps.decode(photo, lambda opened: extractor.resize(opened.pixels())) for photo in photos]


@dataclass(frozen=True)
class Describe:
    """Computes descriptors and codes with the codebook's extractor."""

    codebook: Codebook
    device: str | None

    def __call__(self, photos: Sequence[DecodedPhoto]) -> list[DescribedPhoto]:
        """Describe a batch."""
        extractor = cached_extractor(self.codebook.extractor, self.device)
        self.codebook.check(extractor)
        return add_steps.describe_all(photos, extractor, self.codebook)


def read_tasks(tasks: Sequence[Task], handler: ReleaseWriter) -> list[tuple[Task, EncodedPhoto] | Outcome]:
    """Read the files of photos that are not yet released; the others become outcomes."""
    tried = list(prefetch_map(release_steps.read, tasks, threads=_READ_THREADS))
    photos = [photo for photo in tried if isinstance(photo, release_steps.FileToRelease)]
    looked_up = handler.lookup_existing([(photo.task, photo.sha256, photo.target_sha256) for photo in photos])
    merged = [
        (task, photo.file) if done is None else release_steps.with_differences(done, task, photo.file.data)
        for photo, (task, done) in zip(photos, looked_up, strict=True)
    ]
    return [*merged, *(photo for photo in tried if isinstance(photo, Outcome))]


def decode_tasks(items: Sequence[tuple[Task, EncodedPhoto]]) -> list[tuple[Task, Photo | EncodedPhoto] | Outcome]:
    """Decode photos up to the size limit of a batch; the rest stay encoded."""
    decoded: list[tuple[Task, Photo | EncodedPhoto] | Outcome] = []
    size = 0
    for task, file in items:
        try:
            photo = Photo.decode(file.data, file.name) if size < _MAX_PIXEL_BYTES else file
        except PhotoError as error:
            decoded.append(failed(task.path, error))
            continue
        size += photo.stored_pixels.nbytes if isinstance(photo, Photo) else 0
        decoded.append((task, photo))
    return decoded

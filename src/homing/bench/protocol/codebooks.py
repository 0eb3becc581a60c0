"""Codebooks that a bench trains itself, cached in its out folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from homing._io.files import report_write_errors, write_atomically
from homing.bench.protocol.cache import cache_key, file_state
from homing.bench.protocol.descriptor_set import compute_descriptor_set, photo_states, read_descriptor_set
from homing.bench.protocol.progress import Progress
from homing.codebooks import Codebook
from homing.codebooks.faiss_training import build_quantizer
from homing.extractors import Extractor
from homing.photo import find_photos
from homing.training.codebooks import codebook_from_descriptors


def check_specs(specs: Sequence[str], train_photos: Path, extractor: Extractor, descriptors: int | None) -> None:
    """Refuse specs that cannot be trained, before any other work."""
    if train_photos.is_file():
        count = len(read_descriptor_set(train_photos, extractor, descriptors).descriptors)
    else:
        count = descriptors or len(find_photos([train_photos]))
    for spec in specs:
        build_quantizer(spec, dim=extractor.dim, descriptors=count)


def trained_codebook(
    spec: str,
    train_photos: Path,
    extractor: Extractor,
    folder: Path,
    progress: Progress,
    *,
    descriptors: int | None = None,
) -> tuple[Codebook, list[str]]:
    """A codebook of this spec, trained on a folder of photos or a .npy file of descriptors, and the photos' errors.

    `descriptors` is the number of descriptors to train on: of whole photos first, then of random crops; by default one
    of each photo. Codebook, descriptors and errors are cached in the folder. Unreadable photos are left out.
    """
    photos = [] if train_photos.is_file() else find_photos([train_photos])
    source: object = photo_states(photos) or [str(train_photos.absolute()), *file_state(train_photos)]
    file = folder / f"codebook-{cache_key(spec, extractor.fingerprint, descriptors, source)}.codebook"
    failures_file = file.with_suffix(".json")
    if file.is_file() and failures_file.is_file():
        return Codebook.read(file), json.loads(failures_file.read_text())
    if train_photos.is_file():
        training_set = read_descriptor_set(train_photos, extractor, count=descriptors)
    else:
        count = descriptors or len(photos)
        cache_folder = folder / "train-photos"
        with report_write_errors(cache_folder):
            cache_folder.mkdir(exist_ok=True)
        with progress(f"{spec}: describing the training photos", min(len(photos), count)) as advance:
            training_set = compute_descriptor_set(extractor, photos, count, cache_folder, advance)
    with progress(f"{spec}: training", 1) as advance:
        rows = np.asarray(training_set.descriptors)
        each = -(-(descriptors or len(photos)) // len(photos)) if photos else 1  # unknown for a file of descriptors
        book = codebook_from_descriptors(rows, spec=spec, extractor=extractor, name=spec, per_photo=each)
        advance()
    failures = [] if train_photos.is_file() else training_set.failures
    with report_write_errors(failures_file):
        write_atomically(failures_file, json.dumps(failures).encode())
    book.write(file)
    return book, failures

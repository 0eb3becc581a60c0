"""Codebooks that a bench trains for itself, on one set of photos, to index another; kept in its folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from homing._files import write_atomically, writing
from homing.codebooks import Codebook
from homing.evaluation.protocol.kept import key_of, state_of
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import names_and_states, read_strangers
from homing.extractors import Extractor
from homing.photo import gather
from homing.training.codebooks import train_codebook


def trained_codebook(
    spec: str, taught: Path, extractor: Extractor, folder: Path, stage: Stage, *, descriptors: int | None = None
) -> tuple[Codebook, list[str]]:
    """A codebook of this spec, learnt from a folder of photos or a .npy file of descriptors; an earlier one is kept.

    Of photos so many `descriptors` are taken, whole and in crops; by default one of each. Photos that cannot be read
    teach nothing: their errors stand beside the codebook.
    """
    photos = [] if taught.is_file() else gather([taught])
    source: object = names_and_states(photos) or [str(taught.absolute()), *state_of(taught)]
    file = folder / f"codebook-{key_of(spec, extractor.fingerprint, descriptors, source)}.codebook"
    told = file.with_suffix(".json")
    if file.is_file() and told.is_file():
        return Codebook.read(file), json.loads(told.read_text())
    failures: list[str] = []
    if taught.is_file():
        rows = read_strangers(taught, extractor, count=descriptors).descriptors
        book = Codebook.train(np.asarray(rows, dtype=np.float32), spec=spec, extractor=extractor, name=spec)
    else:
        with stage(f"{spec}: learning", min(len(photos), descriptors or len(photos))) as advance:
            trained = train_codebook(
                [photo.path for photo in photos],
                spec=spec,
                extractor=extractor,
                name=spec,
                descriptors=descriptors,
                report=advance,
            )
        book, failures = trained.codebook, [str(failure) for failure in trained.failures]
    with writing(told):
        write_atomically(told, json.dumps(failures).encode())
    book.write(file)
    return book, failures

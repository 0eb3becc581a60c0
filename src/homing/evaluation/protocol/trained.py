"""Codebooks that a bench trains for itself, on one set of photos, to index another; kept in its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from homing._files import write_atomically, writing
from homing.codebooks import Codebook
from homing.codebooks.learning import untrained
from homing.evaluation.protocol.kept import key_of, state_of
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import find_strangers, names_and_states, read_strangers
from homing.extractors import Extractor
from homing.photo import gather
from homing.training.codebooks import codebook_of


def check_specs(specs: Sequence[str], taught: Path, extractor: Extractor, descriptors: int | None) -> None:
    """Say at once, of all specs, what training would say in an hour."""
    if taught.is_file():
        count = len(read_strangers(taught, extractor, descriptors).descriptors)
    else:
        count = descriptors or len(gather([taught]))
    for spec in specs:
        untrained(spec, dim=extractor.dim, descriptors=count)


def trained_codebook(
    spec: str, taught: Path, extractor: Extractor, folder: Path, stage: Stage, *, descriptors: int | None = None
) -> tuple[Codebook, list[str]]:
    """A codebook of this spec, learnt from a folder of photos or a .npy file of descriptors; an earlier one is kept.

    Of photos so many `descriptors` are taken, whole and in crops; by default one of each. They are kept as well, for
    the next spec. Photos that cannot be read teach nothing: their errors stand beside the codebook.
    """
    photos = [] if taught.is_file() else gather([taught])
    source: object = names_and_states(photos) or [str(taught.absolute()), *state_of(taught)]
    file = folder / f"codebook-{key_of(spec, extractor.fingerprint, descriptors, source)}.codebook"
    told = file.with_suffix(".json")
    if file.is_file() and told.is_file():
        return Codebook.read(file), json.loads(told.read_text())
    if taught.is_file():
        learnt = read_strangers(taught, extractor, count=descriptors)
    else:
        count = descriptors or len(photos)
        kept = folder / "taught"
        with writing(kept):
            kept.mkdir(exist_ok=True)
        with stage(f"{spec}: describing what it learns from", min(len(photos), count)) as advance:
            learnt = find_strangers(extractor, photos, count, kept, advance)
    with stage(f"{spec}: learning", 1) as advance:
        rows = np.asarray(learnt.descriptors)
        each = -(-(descriptors or len(photos)) // len(photos)) if photos else 1  # of a file nobody knows
        book = codebook_of(rows, spec=spec, extractor=extractor, name=spec, each=each)
        advance()
    failures = [] if taught.is_file() else learnt.failures
    with writing(told):
        write_atomically(told, json.dumps(failures).encode())
    book.write(file)
    return book, failures

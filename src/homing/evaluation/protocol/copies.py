"""Descriptors of edited copies: each released file, edited in each way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import PIL
import torch
from torch import Tensor

from homing import __version__
from homing._extras import version_of_extra
from homing._parallel import map_ahead
from homing.collection.turning import TURNS, turns
from homing.edits import Edit
from homing.evaluation.pictures import to_image, to_view
from homing.evaluation.protocol.kept import KeptRows, key_of, state_of
from homing.evaluation.protocol.releasing import Released
from homing.extractors import Extractor
from homing.extractors.base import images_at_once
from homing.photo import Photo


def describe_copies(
    extractor: Extractor,
    released: Sequence[Released],
    edits: Sequence[Edit],
    folder: Path,
    advance: Callable[[], None],
    *,
    turned: bool = False,
) -> np.ndarray:
    """Descriptors (P, E, dim) of P files edited in E ways, kept in the folder; `advance` is called for each file.

    With `turned` each copy is described in all its turns: (P, E, T, dim).
    """
    files = [[item.source, item.seed, *state_of(item.file)] for item in released]
    key = key_of(
        extractor.fingerprint,
        [edit.label for edit in edits],
        files,
        __version__,
        PIL.__version__,
        version_of_extra("augly", extra="bench"),
        *(["turned"] if turned else []),
    )
    file = folder / f"copies-{key}.npy"
    shape = (len(edits), TURNS) if turned else (len(edits),)
    kept = KeptRows(file, (len(released), *shape, extractor.dim), np.float32)
    for _ in range(kept.count):
        advance()
    for batch in edited_copies(extractor, released[kept.count :], edits, turned=turned):
        kept.add(batch.view(len(batch), *shape, -1).numpy())
        for _ in batch:
            advance()
    return kept.rows


def edited_copies(
    extractor: Extractor, released: Iterable[Released], edits: Sequence[Edit], *, turned: bool = False
) -> Iterator[Tensor]:
    """Batches (B, E, dim) of descriptors of files edited in E ways; the network sees several files at once.

    With `turned` the turns of each copy follow each other: (B, E * T, dim).
    """

    def edited(item: Released) -> Tensor:
        image = to_image(Photo.load(item.file).view())
        squares = [extractor.resize(to_view(edit(image, item.seed))) for edit in edits]
        return torch.stack([turn for square in squares for turn in turns(square)] if turned else squares)

    coming = map_ahead(edited, released)
    count = len(edits) * (TURNS if turned else 1)
    while some := list(islice(coming, max(images_at_once(extractor) // count, 1))):
        squares = torch.cat(some)
        with torch.inference_mode():
            parts = [
                extractor(part.to(extractor.device)).cpu() for part in torch.split(squares, images_at_once(extractor))
            ]
        yield torch.cat(parts).view(len(some), count, -1)

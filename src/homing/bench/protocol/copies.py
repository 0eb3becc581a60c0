"""Descriptors of edited copies: each released file with each edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import PIL
import torch
from torch import Tensor

from homing import __version__
from homing._io.parallel import prefetch_map
from homing.bench.protocol.cache import CachedArray, cache_key, file_state
from homing.bench.protocol.release import ReleasedPhoto
from homing.collection.search import VARIANTS, query_variants
from homing.edits import Edit
from homing.extractors import Extractor
from homing.extractors.base import default_batch_size
from homing.imaging import to_image, to_pixels
from homing.photo import Photo


def describe_copies(
    extractor: Extractor,
    released: Sequence[ReleasedPhoto],
    edits: Sequence[Edit],
    folder: Path,
    advance: Callable[[], None],
    *,
    variants: bool = False,
) -> np.ndarray:
    """Descriptors (P, E, dim) of P files with E edits, cached in the folder; `advance` is called for each file.

    With `variants`, each copy is described in its T query variants (quarter turns and mirror): (P, E, T, dim).
    """
    files = [[item.source, item.seed, *file_state(item.file)] for item in released]
    key = cache_key(
        extractor.fingerprint,
        [edit.label for edit in edits],
        files,
        __version__,
        PIL.__version__,
        *(["variants"] if variants else []),
    )
    file = folder / f"copies-{key}.npy"
    shape = (len(edits), VARIANTS) if variants else (len(edits),)
    cache = CachedArray(file, (len(released), *shape, extractor.dim), np.float32)
    for _ in range(cache.count):
        advance()
    for batch in edited_copies(extractor, released[cache.count :], edits, variants=variants):
        cache.append(batch.view(len(batch), *shape, -1).numpy())
        for _ in batch:
            advance()
    return cache.rows


def edited_copies(
    extractor: Extractor, released: Iterable[ReleasedPhoto], edits: Sequence[Edit], *, variants: bool = False
) -> Iterator[Tensor]:
    """Batches (B, E, dim) of descriptors of files with E edits; the network runs on several files at once.

    With `variants`, the T variants of each copy follow each other: (B, E * T, dim).
    """

    def edited(item: ReleasedPhoto) -> Tensor:
        image = to_image(Photo.load(item.file).pixels())
        inputs = [extractor.resize(to_pixels(edit(image, item.seed))) for edit in edits]
        return torch.stack([each for square in inputs for each in query_variants(square)] if variants else inputs)

    edited_files = prefetch_map(edited, released)
    count = len(edits) * (VARIANTS if variants else 1)
    while batch := list(islice(edited_files, max(default_batch_size(extractor) // count, 1))):
        inputs = torch.cat(batch)
        with torch.inference_mode():
            parts = [
                extractor(part.to(extractor.device)).cpu()
                for part in torch.split(inputs, default_batch_size(extractor))
            ]
        yield torch.cat(parts).view(len(batch), count, -1)

"""LPIPS of released files, kept between runs."""

from __future__ import annotations

import numpy as np

from homing.evaluation.protocol.kept import KeptRows, key_of, state_of
from homing.evaluation.protocol.releasing import ReleasedFiles
from homing.evaluation.protocol.setting import Subject
from homing.perception.lpips import Distance
from homing.photo import Photo


def measure_lpips(subject: Subject, made: ReleasedFiles, name: str, distance: Distance) -> list[float]:
    """How far each activated file of a release of this name is from its original, in their order."""
    originals = {original.source: original.file for original in subject.originals}
    pairs = [(originals[file.source], file.file) for file in made.activated]
    if not pairs:
        return []
    key = key_of("lpips", [[*state_of(original), *state_of(released)] for original, released in pairs])
    kept = KeptRows(subject.setting.out / f"lpips-{key}.npy", (len(pairs),), np.float32)
    with subject.stage(f"{subject.codebook.name}: measuring LPIPS, {name}", len(pairs)) as advance:
        for place, (original, released) in enumerate(pairs):
            if place >= kept.count:
                kept.add(np.array([distance(Photo.load(original).view(), Photo.load(released).view())], np.float32))
            advance()
    return [float(each) for each in kept.rows]

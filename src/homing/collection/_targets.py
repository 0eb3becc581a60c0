"""Target paths of released files: one output folder, with the names that the photos have in the input folders."""

from __future__ import annotations

from collections.abc import Iterable

from homing._io.paths import Location, is_inside
from homing.errors import HomingError
from homing.photo import SUFFIXES, FoundPhoto


def targets(found: Iterable[FoundPhoto[Location]], out: Location, format: str | None) -> dict[Location, Location]:
    """Map each target file, in `format` if given, to its photo. Photos inside `out` are skipped."""
    made: dict[Location, Location] = {}
    for item in found:
        if is_inside(item.path, out):
            continue
        target = out / (item.name.with_suffix(SUFFIXES[format]) if format else item.name)
        if target in made:
            raise HomingError(
                f"{made[target]} and {item.path} would both be written to {target}; "
                "activate them into different folders"
            )
        made[target] = item.path
    if not made:
        raise HomingError(f"all the photos lie in the out folder {out} itself; choose another")
    return made

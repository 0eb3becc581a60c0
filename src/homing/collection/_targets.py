"""Where what is released of photos goes: into one folder, under the names they have in the folders given."""

from __future__ import annotations

from collections.abc import Iterable

from homing._io.paths import Location, is_inside
from homing.errors import HomingError
from homing.photo import SUFFIXES, FoundPhoto


def targets(found: Iterable[FoundPhoto[Location]], out: Location, format: str | None) -> dict[Location, Location]:
    """The photo of each file to be written, in a format if one is given; what lies in the folder is no input."""
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

"""Split Flickr8k by role: photos to choose settings on, photos that surround copies, and unrelated queries.

    python tools/split_flickr8k.py FLICKR8K_FOLDER OUT --without HELD_OUT_FOLDER

Photos whose bytes are in HELD_OUT_FOLDER are left out: figures are reported on these. The others are ordered by a hash
of their names and linked into OUT/choose, OUT/surroundings-choose, OUT/surroundings and OUT/queries.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

ROLES = {"choose": 600, "surroundings-choose": 1000, "surroundings": 2000, "queries": 4000}


def main(
    flickr: Annotated[Path, typer.Argument(help="The folder of Flickr8k's JPEG files.")],
    out: Annotated[Path, typer.Argument(help="The folder to make the four folders in.")],
    without: Annotated[Path, typer.Option(help="A folder of photos of Flickr8k that are kept for reporting.")],
) -> None:
    """Link every photo into the folder of its role."""
    held_out = {hashlib.sha256(path.read_bytes()).digest() for path in without.glob("*.jpg")}
    photos = sorted(flickr.glob("*.jpg"), key=lambda path: hashlib.sha256(path.name.encode()).digest())
    rest = [path for path in photos if hashlib.sha256(path.read_bytes()).digest() not in held_out]
    if len(rest) < sum(ROLES.values()):
        raise typer.BadParameter(f"{flickr} must hold at least {sum(ROLES.values()):,} other photos, got {len(rest):,}")
    for role, count in ROLES.items():
        (out / role).mkdir(parents=True, exist_ok=True)
        for path in rest[:count]:
            (out / role / path.name).symlink_to(path.resolve())
        rest = rest[count:]
        print(f"{out / role}: {count:,} photos")


if __name__ == "__main__":
    typer.run(main)

"""Release the photos of a folder, then find a photo from an edited copy.

    python examples/quickstart.py PHOTOS OUT

OUT, a new folder, receives a collection, the files to release, and one edited copy.
"""

import sys
from pathlib import Path

from PIL import Image

import homing


def main(photos: Path, out: Path) -> None:
    """Activate the photos, edit one of the released files, and search for it."""
    with homing.Collection.create(out / "photos.homing") as collection:
        released = None
        for outcome in collection.activate(photos, out / "released"):
            print(f"{outcome.photo}: {outcome.state}, {outcome.reason or 'no remarks'}")
            released = outcome.released or released
        if released is None:
            raise SystemExit("no photo was released")

        # What others may make of it: without its edges, smaller, as a JPEG file of low quality.
        with Image.open(str(released)) as image:
            width, height = image.size
            copy = image.convert("RGB").crop((width // 20, height // 20, width * 19 // 20, height * 19 // 20))
        copy.thumbnail((320, 320))
        copy.save(out / "copy.jpg", quality=60)

        result = collection.search(out / "copy.jpg", k=3)
        print(f"\nThe verdict on the copy: {result.verdict}. {result.settings}")
        for match in result:
            print(f"  {match.photo}  distance {match.distance:.3f}  false match {match.false_match_probability:.1e}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""Photos per second of activation, from JPEG file to JPEG file, for many photos.

python benchmarks/release_throughput.py PHOTOS                               # 20,000 files made from a folder
python benchmarks/release_throughput.py PHOTOS --count 4000 --size 1024x768  # fewer files, all of one size
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from homing._tensors import hardware
from homing.bench.tables import markdown
from homing.collection import Collection, Outcome

MARGIN = 8  # files of one photo are cropped differently, by fewer pixels than this


def main() -> None:
    """Make the files, activate them and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--size", help="such as 1024x768; the size of each photo by default")
    parser.add_argument("--recipe", default="homing-fast")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        photos, released = Path(folder, "photos"), Path(folder, "released")
        photos.mkdir()
        sources = sorted(path for path in options.photos.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
        files = [(*pair, photos, options.size) for pair in enumerate(islice(cycle(sources), options.count))]
        with ProcessPoolExecutor() as pool:
            list(pool.map(_make, files, chunksize=64))
        times, states = list[float](), list[str]()

        def report(outcome: Outcome) -> None:
            times.append(time.perf_counter())
            states.append(outcome.state)

        with Collection.create(Path(folder, "many.homing")) as collection:
            times.append(time.perf_counter())
            collection.activate([photos], released, recipe=options.recipe, report=report, processes=True)
    begin, end = len(times) // 10, len(times) * 9 // 10
    rows = [
        ["photos", f"{len(states):,}"],
        ["activated", f"{states.count('activated'):,}"],
        ["seconds in total", f"{times[-1] - times[0]:.1f}"],
        ["photos per second, including the start of the workers", f"{len(states) / (times[-1] - times[0]):.0f}"],
        ["photos per second, from 10 % to 90 % of the photos", f"{(end - begin) / (times[end] - times[begin]):.0f}"],
    ]
    print(f"{hardware()}; {options.recipe}, {options.size or 'sizes unchanged'}\n")
    print(markdown(["what", "measured"], rows))


def _make(file: tuple[int, Path, Path, str | None]) -> None:
    number, source, folder, size = file
    with Image.open(source) as opened:
        image = opened.convert("RGB")
    if size:
        width, height = (int(side) for side in size.split("x"))
        image = image.resize((width + MARGIN, height + MARGIN), Image.Resampling.LANCZOS)
    left, top = number % MARGIN, number // MARGIN % MARGIN
    cut = image.crop((left, top, image.width - MARGIN + left, image.height - MARGIN + top))
    cut.save(folder / f"{number:06}.jpg", quality=90)


if __name__ == "__main__":
    main()

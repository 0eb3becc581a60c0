"""The speed bench: the plain loop and homing on the same photos in the same run, with the recall of both."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import torch
from PIL import Image

from homing import codebooks, extractors
from homing._io.files import prepare_output_folder
from homing.activation import resolve_recipe
from homing.activation.pipeline import batch_size_for
from homing.bench.benches.speed_files import FilesResult, time_files
from homing.bench.benches.speed_loop import PLAIN, LoopConfig, LoopRow, measure_memory, time_loops
from homing.bench.demo import demo_photos
from homing.bench.protocol.config import refuse_inside
from homing.bench.protocol.progress import Progress
from homing.codebooks import Codebook
from homing.errors import HomingError, PhotoError
from homing.objectives import has_objective
from homing.photo import Photo, find_photos

PLAIN_RECIPE = "paper"  # the recipe of the plain loop, always measured with homing too
_QUALITY = 90  # JPEG quality of the demo's photos, typical of cameras and agencies


@dataclass(frozen=True, kw_only=True)
class SpeedBench:
    """The configuration of the speed bench: by default the demo's photos as JPEG files, and the device's batch size."""

    out: Path
    photos: Path | None = None
    codebook: str = "homing-1"
    recipes: Sequence[str] = ("paper", "homing-fast", "homing")
    batches: Sequence[int] | None = None
    rounds: int = 3
    limit: int | None = None

    def __post_init__(self) -> None:
        for name in self.recipes:
            resolve_recipe(name)
        for batch in self.batches or ():
            if batch < 1:
                raise HomingError(f"a batch holds at least 1 photo, got {batch}")
        if self.rounds < 1 or (self.limit is not None and self.limit < 1):
            raise HomingError(f"rounds and limit must be at least 1, got {self.rounds} and {self.limit}")

    @property
    def loop_configs(self) -> list[LoopConfig]:
        """The plain loop, then homing with each recipe."""
        return [PLAIN, *(LoopConfig(resolve_recipe(name)) for name in dict.fromkeys([PLAIN_RECIPE, *self.recipes]))]


@dataclass(frozen=True)
class SpeedResult:
    """The results of the bench; `megapixels` is the mean of the photos."""

    bench: SpeedBench
    codebook: Codebook
    device: str
    photos: int
    megapixels: float
    loop: list[LoopRow]
    files: FilesResult
    failures: list[str]
    seconds: float


def run_speed_bench(bench: SpeedBench, progress: Progress) -> SpeedResult:
    """Measure loops, memory, files and recall, on temporary copies of the photos and in temporary collections."""
    started = time.perf_counter()
    codebook = codebooks.load(bench.codebook)
    if not has_objective(codebook):
        raise HomingError(f"photos cannot be activated for spec '{codebook.spec}'; choose another --codebook")
    extractor = extractors.load(codebook.extractor)
    codebook.check(extractor)
    if bench.photos is not None:
        refuse_inside(bench.out, bench.photos)
    prepare_output_folder(bench.out)
    loop_configs = bench.loop_configs
    batches = list(dict.fromkeys(bench.batches or (batch_size_for(extractor.device).photos,)))
    with tempfile.TemporaryDirectory(dir=bench.out, prefix=".speed-") as temporary:
        folder = Path(temporary)
        source = _demo_jpegs(folder / "demo") if bench.photos is None else bench.photos
        pixels, failures = _copy_photos(source, bench.limit, folder / "photos")
        photos = sorted((folder / "photos").iterdir())
        images = [Photo.load(photo).pixels() for photo in photos[: max(batches)]]
        with progress("The loop", (1 + bench.rounds) * len(loop_configs) * len(batches)) as advance:
            rows = time_loops(
                loop_configs,
                images,
                batches=batches,
                rounds=bench.rounds,
                extractor=extractor,
                codebook=codebook,
                advance=advance,
            )
        if extractor.device.type == "cpu" and sys.platform == "linux":  # peak memory is not available elsewhere
            with progress("Memory of the loop", len(rows)) as advance:
                rows = measure_memory(rows, loop_configs, photos, codebook=bench.codebook, advance=advance)
        files = time_files(
            loop_configs,
            folder / "photos",
            folder,
            rounds=bench.rounds,
            extractor=extractor,
            codebook=codebook,
            progress=progress,
        )
    return SpeedResult(
        bench=bench,
        codebook=codebook,
        device=torch.cuda.get_device_name() if extractor.device.type == "cuda" else "CPU",
        photos=len(photos),
        megapixels=sum(pixels) / len(pixels) / 1e6,
        loop=rows,
        files=files,
        failures=[*failures, *files.failures],
        seconds=time.perf_counter() - started,
    )


def _copy_photos(source: Path, limit: int | None, folder: Path) -> tuple[list[int], list[str]]:
    """Copy the readable photos under unique names; returns their pixel counts and the errors of the others."""
    folder.mkdir()
    pixels, failures = [], []
    for number, found in enumerate(find_photos([source])[:limit]):
        try:
            photo = Photo.load(found.path)
        except PhotoError as error:
            failures.append(str(error))
            continue
        (folder / f"{number:06}-{found.path.name}").write_bytes(photo.data)
        pixels.append(photo.stored_pixels.shape[0] * photo.stored_pixels.shape[1])
    if not pixels:
        raise HomingError(f"none of the {len(failures)} photos can be read; the first error: {failures[0]}")
    return pixels, failures


def _demo_jpegs(folder: Path) -> Path:
    """The photos of the demo as JPEG files."""
    folder.mkdir()
    for name, data in demo_photos().items():
        with Image.open(BytesIO(data)) as image:
            converted = image if image.mode in ("L", "RGB") else image.convert("RGB")
            converted.save(folder / f"{Path(name).stem}.jpg", quality=_QUALITY)
    return folder

"""Cost of activation and search by photo size, by steps and EOT samples of the recipe, and by number of references.

python benchmarks/growth.py            # up to 12 megapixels and a million references; a few minutes on two cores
python benchmarks/growth.py --quick    # a minute
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from io import BytesIO
from statistics import median

import numpy as np
import torch
from PIL import Image

from homing import codebooks, extractors
from homing._tensors import hardware
from homing.activation import RECIPES, Recipe, activate_batch
from homing.activation.optimize import optimize
from homing.bench.tables import markdown
from homing.codebooks import Codebook
from homing.extractors import Extractor, describe_images
from homing.indexes import FaissIndex
from homing.objectives import objective_for
from homing.photo import Photo

ROUNDS = 3
BATCH = 4


def main() -> None:
    """Print four tables in Markdown."""
    quick = "--quick" in sys.argv[1:]
    extractor, codebook = extractors.load("homing-1"), codebooks.load("homing-1")
    print(f"{hardware()}; {extractor.device.type}, {torch.get_num_threads()} threads; medians of {ROUNDS}\n")
    paper = RECIPES["paper"]
    sizes = (0.2, 1) if quick else (0.2, 1, 3, 12)
    _print_table(["megapixels", "loop, ms", "activate, ms"], _by_size(sizes, paper, extractor, codebook))
    steps = [replace(paper, steps=count) for count in ((1, 10) if quick else (1, 3, 10, 30))]
    _print_table(["steps", "loop, ms per photo"], _by_recipe(steps, "steps", extractor, codebook))
    samples = [replace(paper, steps=3, eot_samples=count) for count in ((1, 4) if quick else (1, 2, 4, 8))]
    _print_table(
        ["EOT samples", "loop of 3 steps, ms per photo"], _by_recipe(samples, "eot_samples", extractor, codebook)
    )
    counts = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    _print_table(["references", "search, one probe, ms", "search, default, ms"], _by_references(counts, codebook))


def _by_size(
    sizes: Sequence[float], recipe: Recipe, extractor: Extractor, codebook: Codebook
) -> Iterator[Sequence[str]]:
    """Time for a single photo: the loop alone, and from the decoded photo to the released bytes."""
    for megapixels in sizes:
        photo = _photo(megapixels)
        loop = _loop([photo], recipe, extractor, codebook)
        whole = _ms(lambda photo=photo: activate_batch([photo], extractor=extractor, codebook=codebook, recipe=recipe))
        yield f"{megapixels:g}", f"{_ms(loop):.0f}", f"{whole:.0f}"


def _by_recipe(
    recipes: Sequence[Recipe], setting: str, extractor: Extractor, codebook: Codebook
) -> Iterator[Sequence[str]]:
    photos = [_photo(0.2)] * BATCH
    for recipe in recipes:
        milliseconds = _ms(_loop(photos, recipe, extractor, codebook)) / BATCH
        yield str(getattr(recipe, setting)), f"{milliseconds:.1f}"


def _by_references(counts: Sequence[int], codebook: Codebook) -> Iterator[Sequence[str]]:
    """Time of single queries; the references are random samples of the bundled distractors."""
    rng = np.random.default_rng(0)
    codes = codebooks.bundled_distractors(codebook).codes
    queries = codebook.decode(codes[rng.integers(len(codes), size=100)])
    for count in counts:
        index = FaissIndex(codebook)
        index.add(codes[rng.integers(len(codes), size=count)], np.arange(count))
        yield f"{count:,}", *(f"{_search_ms(index, queries, probes):.3f}" for probes in (1, None))


def _search_ms(index: FaissIndex, queries: torch.Tensor, probes: int | None) -> float:
    times = []
    for query in queries:
        started = time.perf_counter()
        index.search(query[None], 10, probes)
        times.append(1000 * (time.perf_counter() - started))
    return median(times)


def _loop(
    photos: Sequence[Photo], recipe: Recipe, extractor: Extractor, codebook: Codebook
) -> Callable[[], list[torch.Tensor]]:
    pixels = [photo.pixels() for photo in photos]
    objective = objective_for(codebook, describe_images(extractor, pixels).to(extractor.device), recipe.objective)
    return lambda: optimize(pixels, extractor=extractor, objective=objective, recipe=recipe)


def _ms(call: Callable[[], object]) -> float:
    """Median of the rounds after one warm-up; results are on the CPU, so no synchronization is needed."""
    times = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - started))
    return median(times[1:])


def _photo(megapixels: float) -> Photo:
    """A real photo resized to this size, 4:3, as a JPEG file."""
    source = Image.open(BytesIO(files("sklearn.datasets.images").joinpath("china.jpg").read_bytes()))
    height = round((megapixels * 1e6 * 3 / 4) ** 0.5)
    buffer = BytesIO()
    source.resize((round(height * 4 / 3), height), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    return Photo.decode(buffer.getvalue(), f"{megapixels:g} megapixels")


def _print_table(headings: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    print(markdown(headings, list(rows)), flush=True)


if __name__ == "__main__":
    main()

"""The paper's main table in small: how many edited copies one probe finds, passive, with `paper` and with `homing`.

    python examples/paper_table_small.py                  six photos of scikit-image and scikit-learn
    python examples/paper_table_small.py FOLDER           the first six photos of a folder
    python examples/paper_table_small.py FOLDER --count 50

Every photo is released three times: passive (as it is), activated as in the paper (`paper`), and activated as homing
does by default (`homing`). Each released photo is edited in the paper's 14 ways, and every copy is searched for among
118,287 distractors with one probe: the search probes a single cell of the index. The index never changes: it holds
the codes of the original photos, whichever way these are released.

Six photos take one to two minutes on two cores. Needs: pip install -e '.[demo]'. The whole measurement, with
intervals, tables in LaTeX and figures, is `homing bench retrieval`.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.resources import files
from pathlib import Path
from statistics import fmean

from PIL import Image, ImageOps

import homing
from homing.edits import PAPER

PHOTOS = {
    "skimage.data": ["astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"],
    "sklearn.datasets.images": ["china.jpg", "flower.jpg"],
}
RECIPES = ["passive", "paper", "homing"]
SIDE = 512  # pixels: smaller photos are activated faster

# Recall of the paper, table 1: SSCD, IVF4096,PQ8x8, one probe, 10,000 photos among a million (Fernandez et al., 2023).
PUBLISHED = {"passive": 0.45, "paper": 0.75}


def load_photos(folder: Path | None, count: int) -> dict[str, Image.Image]:
    """Photos by name, upright, in RGB, at most 512 pixels a side."""
    if folder is None:
        paths = [files(package).joinpath(name) for package, names in PHOTOS.items() for name in names]
    else:
        paths = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in {".jpg", ".jpeg", ".png", ".webp"}]
    photos = {}
    for path in paths[:count]:
        with path.open("rb") as file:
            photo = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
        photo.thumbnail((SIDE, SIDE))
        photos[f"{Path(path.name).stem}.png"] = photo
    return photos


def released(photos: dict[str, Image.Image], recipe: str) -> tuple[list[Image.Image], float | None]:
    """The photos as they are published with a recipe, and the mean PSNR of the activated ones."""
    if recipe == "passive":
        return list(photos.values()), None
    activations = homing.activate(list(photos.values()), recipe=recipe)
    failed = [each for each in activations if isinstance(each, homing.HomingError)]
    if failed:
        raise failed[0]
    psnrs = [each.quality.psnr for each in activations if each.state == "activated"]
    return [each.image().convert("RGB") for each in activations], fmean(psnrs)


def recall_by_edit(collection: homing.Collection, names: list[str], published: list[Image.Image]) -> dict[str, float]:
    """For each of the 14 edits the share of copies whose nearest match is their own photo."""
    recall = {}
    for edit in PAPER:
        # The seed makes random edits reproducible: all recipes get the same ones.
        copies = [edit(image, seed) for seed, image in enumerate(published)]
        # One probe; rerank=0 compares codes only, as the paper does.
        results = collection.search(copies, k=1, probes=1, rerank=0)
        found = [Path(result.best.photo).name if result.best else None for result in results]
        recall[edit.label] = fmean(name == best for name, best in zip(names, found, strict=True))
    return recall


def measure(photos: dict[str, Image.Image]) -> dict[str, tuple[dict[str, float], float | None]]:
    """By recipe: the recall of each edit, and the mean PSNR of the activated photos."""
    results = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        # Distractors come with the bundled codebook: photos that no query is a copy of.
        homing.Collection.create(Path(folder, "table.homing"), with_distractors=True) as collection,
    ):
        collection.add(photos)
        for recipe in RECIPES:
            published, psnr = released(photos, recipe)
            results[recipe] = recall_by_edit(collection, list(photos), published), psnr
    return results


def print_table(results: dict[str, tuple[dict[str, float], float | None]]) -> None:
    """Edits are rows and recipes are columns: the paper's table, turned by 90 degrees."""
    print(f"{'recall at rank 1, one probe':<30}" + "".join(f"{recipe:>10}" for recipe in results))
    for edit in PAPER:
        print(f"  {edit.label:<28}" + "".join(f"{recall[edit.label]:>10.2f}" for recall, _ in results.values()))
    print(
        f"{'mean of the 14 edits':<30}" + "".join(f"{fmean(recall.values()):>10.3f}" for recall, _ in results.values())
    )
    print(
        f"{'PSNR, dB':<30}" + "".join(f"{'–' if psnr is None else f'{psnr:.1f}':>10}" for _, psnr in results.values())
    )
    published = [f"{PUBLISHED[recipe]:>10.2f}" if recipe in PUBLISHED else f"{'–':>10}" for recipe in results]
    print(f"{'mean as published (SSCD)':<30}" + "".join(published))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="photos of your own; by default six public ones")
    parser.add_argument("--count", type=int, default=6, help="how many of them (default: 6)")
    options = parser.parse_args()
    photos = load_photos(options.folder, options.count)
    print(f"{len(photos)} photos, 118,287 distractors\n")
    print_table(measure(photos))


if __name__ == "__main__":
    main()

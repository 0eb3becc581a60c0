"""Compare recipes on the validation photos: recall at one probe, image quality and time.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER SPLIT
    python tools/choose_recipe.py SPLIT OUT homing homing,grad_power=0.7,lr_decay=yes homing,budget=jnd-printed …

A candidate is the name of a recipe and the settings that differ from it. Each candidate releases the photos of
SPLIT/validation; their edited copies are searched for, with one probe, among SPLIT/distractors. OUT caches results.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from homing.activation import Recipe, resolve_recipe
from homing.bench.base import PASSIVE, PhotoSettings
from homing.bench.codebook_bench import codebook_runs
from homing.bench.runs import CodebookRun
from homing.bench.tables import markdown
from homing.cli._progress import progress
from homing.edits import PAPER
from homing.perception import budget_named

HEADINGS = ["recipe", "recall", "identity", "PSNR", "SSIM", "L∞", "ms per photo"]


def main(
    split: Annotated[Path, typer.Argument(help="The folder with validation/ and distractors/.")],
    out: Annotated[Path, typer.Argument(help="The output folder.")],
    candidates: Annotated[list[str], typer.Argument(help="NAME or NAME,SETTING=VALUE,…")],
    limit: Annotated[int | None, typer.Option(help="Number of photos.", show_default="all")] = None,
) -> None:
    """Measure each candidate and print a table."""
    recipes = [_recipe(candidate) for candidate in candidates]
    distractors = sum(1 for _ in (split / "distractors").iterdir())
    settings = PhotoSettings(
        photos=split / "validation",
        distractor_photos=split / "distractors",
        out=out,
        distractors=distractors,
        limit=limit,
    )
    run = next(codebook_runs(settings, progress))
    print(markdown(HEADINGS, [_row(run, PASSIVE), *(_row(run, recipe) for recipe in recipes)]))


def _row(run: CodebookRun, recipe: Recipe | str) -> list[str]:
    started = time.perf_counter()
    released = run.release(recipe)
    milliseconds = 1000 * (time.perf_counter() - started) / len(released.files)
    name = released.name
    found = run.search(run.copies(released.files, PAPER, name), 1, 1, name)
    correct = run.copy_search(released, PAPER, found, 1).correct
    cells = [f"{correct.mean():.4f}", f"{correct[:, 0].mean():.4f}"]
    if released.qualities:
        cells += [f"{fmean(each.psnr for each in released.qualities):.2f}"]
        cells += [f"{fmean(each.ssim for each in released.qualities):.4f}"]
        cells += [f"{fmean(each.linf for each in released.qualities):.1f}", f"{milliseconds:.0f}"]
    return [name, *cells, *[""] * (len(HEADINGS) - 1 - len(cells))]


def _recipe(candidate: str) -> Recipe:
    name, *changes = candidate.split(",")
    recipe = resolve_recipe(name)
    return replace(recipe, name=candidate, **dict(_setting(recipe, change) for change in changes))


def _setting(recipe: Recipe, change: str) -> tuple[str, Any]:
    name, _, value = change.partition("=")
    if name == "budget":
        return name, budget_named(value)(psnr=recipe.budget.psnr)
    if name == "lr_decay":
        if value not in ("yes", "no"):
            raise typer.BadParameter(f"lr_decay must be yes or no, got '{value}'")
        return name, value == "yes"
    if name not in ("steps", "lr", "eot_samples", "image_weight", "grad_power"):
        raise typer.BadParameter(f"unknown setting '{name}'")
    return name, type(getattr(recipe, name))(value)


if __name__ == "__main__":
    typer.run(main)

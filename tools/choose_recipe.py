"""Compares recipes by what users will have of them, on photos that nothing else is measured on.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER SPLIT
    python tools/choose_recipe.py SPLIT OUT homing homing,steps=10,power=0.7,fading=yes homing,budget=jnd-printed …

A candidate is the name of a recipe, and what differs from it. Each releases the photos of SPLIT/validation, which are
edited and searched for, with one probe, among SPLIT/strangers. What is done stays in OUT.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from homing.activation import Recipe, recipe_named
from homing.cli._screen import progress
from homing.edits import PAPER
from homing.evaluation.protocol.setting import PASSIVE, Setting, Subject, subjects
from homing.evaluation.results import markdown
from homing.evaluation.scores import rank_of
from homing.perception import budget_named

HEADINGS = ["recipe", "recall", "identity", "PSNR", "SSIM", "L∞", "ms per photo"]


def main(
    split: Annotated[Path, typer.Argument(help="The folder with validation/ and strangers/.")],
    out: Annotated[Path, typer.Argument(help="The folder for all that is made.")],
    candidates: Annotated[list[str], typer.Argument(help="NAME or NAME,SETTING=VALUE,…")],
    limit: Annotated[int | None, typer.Option(help="So many photos only.", show_default="all")] = None,
) -> None:
    """Measure each candidate, and print the table of all."""
    recipes = [_recipe(candidate) for candidate in candidates]
    strangers = sum(1 for _ in (split / "strangers").iterdir())
    setting = Setting(
        photos=split / "validation", background=split / "strangers", out=out, strangers=strangers, limit=limit
    )
    subject = next(subjects(setting, progress))
    print(markdown(HEADINGS, [_row(subject, PASSIVE), *(_row(subject, recipe) for recipe in recipes)]))


def _row(subject: Subject, recipe: Recipe | str) -> list[str]:
    started = time.perf_counter()
    made = subject.release(recipe)
    taken = 1000 * (time.perf_counter() - started) / len(made.files)
    name = recipe.name if isinstance(recipe, Recipe) else recipe
    found = subject.search(subject.copies(made, PAPER, name), 1, 1, name)
    home = rank_of(found.ids, subject.own(made).repeat(len(PAPER))).reshape(-1, len(PAPER)) == 0
    told = [f"{home.mean():.4f}", f"{home[:, 0].mean():.4f}"]
    if made.qualities:
        told += [f"{fmean(each.psnr for each in made.qualities):.2f}"]
        told += [f"{fmean(each.ssim for each in made.qualities):.4f}"]
        told += [f"{fmean(each.linf for each in made.qualities):.1f}", f"{taken:.0f}"]
    return [name, *told, *[""] * (len(HEADINGS) - 1 - len(told))]


def _recipe(candidate: str) -> Recipe:
    name, *changes = candidate.split(",")
    recipe = recipe_named(name)
    return replace(recipe, name=candidate, **dict(_setting(recipe, change) for change in changes))


def _setting(recipe: Recipe, change: str) -> tuple[str, Any]:
    name, _, value = change.partition("=")
    if name == "budget":
        return name, budget_named(value)(psnr=recipe.budget.psnr)
    if name == "fading":
        if value not in ("yes", "no"):
            raise typer.BadParameter(f"fading is yes or no, got '{value}'")
        return name, value == "yes"
    if name not in ("steps", "rate", "views", "fidelity", "power"):
        raise typer.BadParameter(f"there is no setting '{name}'")
    return name, type(getattr(recipe, name))(value)


if __name__ == "__main__":
    typer.run(main)

"""homing add, activate and remove: the photos of a collection; homing recipes: how they are activated."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import homing
from homing._options import Option, setting
from homing.cli._app import CollectionPath, OptionalPhotoSources, PhotoSources, id_or_path
from homing.cli._console import JsonFlag, console, print_failure, print_json, print_rows
from homing.cli._outcomes import ACTIVATED, ADDED, as_json, count_outcomes, finish, outcomes_json
from homing.errors import HomingError

Out = Annotated[
    str,
    typer.Option(
        help="The folder for the files to release, created if needed, or an address such as s3://bucket/released."
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a report: FILE.html with small pictures before and after, or FILE.csv with a row per photo.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ActivateOptions:
    """How photos are activated: the options of `homing activate` and `homing cluster activate`."""

    recipe: str = setting(Option("How photos are activated; list recipes with: homing recipes."), "homing")
    budget: str | None = setting(
        Option(
            "How far each pixel may change: jnd, jnd-printed, jnd-uniform or linf (the same bound everywhere).",
            default_text="the recipe's",
        ),
        None,
    )
    psnr: float | None = setting(
        Option("PSNR of the released file, in dB; a higher value changes the photo less.", default_text="43.8"), None
    )
    alpha: float | None = setting(
        Option("Strength instead of a PSNR. jnd, jnd-uniform: a factor, 3 in the paper. linf: the bound, of 255."), None
    )
    format: str | None = setting(
        Option("Write jpeg, png, webp, tiff, avif, heic or bmp.", default_text="as the photo came"), None
    )
    graphics: bool = setting(Option("Activate graphics too, such as logos and screenshots of text."), False)


def add(
    collection: CollectionPath,
    photos: PhotoSources,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace a reference if the file at its path has changed since it was added."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Index photos as they are, so that copies of them can be found.

    If the file of a known photo has moved, its new path is recorded.

    Examples:

        homing add holiday.homing photos/

        homing add holiday.homing beach.jpg sunset.png

        homing add holiday.homing photos/ --replace
    """
    with homing.Collection.open(collection) as opened:
        found = homing.photo.find_photos(photos)
        document = outcomes_json if json else None
        with count_outcomes("Adding", len(found), ADDED, document) as tally:
            opened.add(found, replace=replace, on_outcome=tally.count)
    finish(tally, document)


def activate(
    *,
    collection: CollectionPath,
    photos: OptionalPhotoSources = None,
    out: Out,
    state: Annotated[
        Literal["passive"] | None,
        typer.Option(help="Instead of named photos, activate the references in this state (passive)."),
    ] = None,
    options: ActivateOptions,
    report: Report = None,
    json: JsonFlag = False,
) -> None:
    """Index photos, change their pixels invisibly, check the results, and write the files to release.

    A photo counts as activated only if the written file, decoded again, has the requested PSNR, stays in its cell, and
    has a lower loss (the recipe's objective) than the original. Otherwise it is released unchanged, with the reason.

    Examples:

        homing activate holiday.homing photos/ --out released/

        homing activate holiday.homing beach.jpg --out released/ --psnr 46

        homing activate holiday.homing beach.jpg --out released/ --budget linf --alpha 4

        homing activate holiday.homing --state passive --out released/

        homing activate holiday.homing photos/ --out released/ --report report.html
    """
    if bool(photos) == bool(state):
        raise HomingError("give either photos to activate or --state passive (all that are not activated yet)")
    keywords = prepare_activation(options, report) | {"processes": True}
    with homing.Collection.open(collection) as opened:
        found = homing.photo.find_photos(photos or [])
        total = len(found) if photos else opened.info().passive
        document = outcomes_json if json else None
        with count_outcomes("Activating", total, ACTIVATED, document) as tally:
            if photos:
                opened.activate(found, out, on_outcome=tally.count, **keywords)
            else:
                opened.activate_passive(out, on_outcome=tally.count, **keywords)
    finish(tally, document, report)


def prepare_activation(options: ActivateOptions, report: Path | None) -> dict[str, Any]:
    """Check the options of an activation and its report before the job; returns the arguments of an `activate`."""
    from homing.reports import prepare_report

    recipe = homing.activation.resolve_recipe(options.recipe)
    kind = type(recipe.budget) if options.budget is None else homing.perception.budget_named(options.budget)
    psnr, alpha = options.psnr, options.alpha
    if psnr is None and alpha is None:
        psnr, alpha = recipe.budget.psnr, recipe.budget.alpha
    keywords = {name: value for name, value in vars(options).items() if name not in ("budget", "psnr", "alpha")}
    keywords["recipe"] = replace(recipe, budget=kind(psnr=psnr, alpha=alpha))
    keywords["format"] = None if options.format is None else homing.photo.format_name(options.format)
    if report is not None:
        prepare_report(report)
    return keywords


def remove(
    collection: CollectionPath,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="ID_OR_PATH…",
            help="Ids of references, the paths they were added from, or folders of these. A number is an id; write ./7"
            " for a file called 7.",
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonFlag = False,
) -> None:
    """Remove references, so that no search finds them. Photos and released files are not deleted.

    Examples:

        homing remove holiday.homing photos/beach.jpg

        homing remove holiday.homing photos/2019/ 12 15 --yes
    """
    with homing.Collection.open(collection) as opened:
        named = opened.select([id_or_path(each) for each in what])
        asked = named.ids and not yes and sys.stdin.isatty()
        if asked and not typer.confirm(f"Remove {_count(len(named.ids))} from {collection}?", err=True):
            console.print("Nothing was removed.")
            return
        outcomes = [*(opened.remove(named.ids) if named.ids else []), *named.unknown]
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failed:
        print_failure(f"{outcome.photo}: {outcome.reason}")
    if json:
        print_json([as_json(outcome) for outcome in outcomes])
    else:
        removed, released = len(outcomes) - len(failed), sum(outcome.released is not None for outcome in outcomes)
        of_them = f" of {released:,} of them" if removed > 1 else ""
        left = f" The released files{of_them} were not deleted." if released else ""
        console.print(f"{_count(removed)} removed.{left}")
    raise typer.Exit(int(bool(failed)))


def _count(references: int) -> str:
    return f"{references:,} reference{'s' * (references != 1)}"


def recipes(json: JsonFlag = False) -> None:
    """List the recipes for activating photos."""
    columns = ("name", "objective", "constraint", "steps", "eot_samples", "lr")
    print_rows(
        [
            {name: getattr(each, name) for name in columns} | {"budget": str(each.budget), "about": each.summary}
            for each in homing.RECIPES.values()
        ],
        json,
    )

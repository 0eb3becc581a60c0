"""homing activate: index photos, activate them, check the results, write the files to release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from homing.cli._console import CollectionPath, JsonFlag, OptionalPhotoSources
from homing.cli._jobs import run

if TYPE_CHECKING:
    from homing.activation import Recipe

STATE_LABELS = {"activated": "activated", "unchanged": "unchanged", "failed": "failed"}


Out = Annotated[
    str,
    typer.Option(
        help="The folder for the files to release, created if needed, or an address such as s3://bucket/released."
    ),
]
RecipeName = Annotated[str, typer.Option(help="How photos are activated; list recipes with: homing recipes.")]
BudgetName = Annotated[
    str | None,
    typer.Option(
        help="How far each pixel may change: jnd, jnd-printed, jnd-uniform or linf (the same bound everywhere).",
        show_default="the recipe's",
    ),
]
Psnr = Annotated[
    float | None,
    typer.Option(help="PSNR of the released file, in dB; a higher value changes the photo less.", show_default="43.8"),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        help="Strength instead of a PSNR. jnd, jnd-uniform: a factor, 3 in the paper. linf: the bound, of 255."
    ),
]
Format = Annotated[
    str | None, typer.Option(help="Write jpeg, png, webp, tiff, avif, heic or bmp.", show_default="as the photo came")
]
Graphics = Annotated[
    bool,
    typer.Option("--graphics", help="Activate graphics too, such as logos and screenshots of text."),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a report: FILE.html with small pictures before and after, or FILE.csv with a row per photo.",
    ),
]


def activate(
    collection: CollectionPath,
    out: Out,
    photos: OptionalPhotoSources = None,
    state: Annotated[
        Literal["passive"] | None,
        typer.Option(help="Instead of named photos, activate the references in this state (passive)."),
    ] = None,
    recipe: RecipeName = "homing",
    budget: BudgetName = None,
    psnr: Psnr = None,
    alpha: Alpha = None,
    format: Format = None,
    graphics: Graphics = False,
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
    from homing.errors import HomingError
    from homing.photo import format_name

    if bool(photos) == bool(state):
        raise HomingError("give either photos to activate or --state passive (all that are not activated yet)")
    chosen = recipe_with_budget(recipe, budget, psnr, alpha)
    if format is not None:
        format = format_name(format)
    if report is not None:
        from homing.reports import prepare_report

        prepare_report(report)
    run(
        collection,
        photos,
        "Activating",
        STATE_LABELS,
        json,
        lambda opened, on_outcome: (
            opened.activate(
                photos, out, recipe=chosen, format=format, on_outcome=on_outcome, processes=True, graphics=graphics
            )
            if photos
            else opened.activate_passive(
                out, recipe=chosen, format=format, on_outcome=on_outcome, processes=True, graphics=graphics
            )
        ),
        report,
    )


def recipe_with_budget(recipe: str, budget: str | None, psnr: float | None, alpha: float | None) -> Recipe:
    """The recipe of this name, with another budget if one is given."""
    from homing.activation import resolve_recipe
    from homing.perception import budget_named

    chosen = resolve_recipe(recipe)
    kind = type(chosen.budget) if budget is None else budget_named(budget)
    if psnr is None and alpha is None:
        psnr, alpha = chosen.budget.psnr, chosen.budget.alpha
    return replace(chosen, budget=kind(psnr=psnr, alpha=alpha))

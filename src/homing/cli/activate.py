"""homing activate: index, activate, verify, write what may be released."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._console import CollectionPath, JsonFlag, OptionalPhotoSources
from homing.cli._jobs import run

if TYPE_CHECKING:
    from homing.activation import Recipe

STATE_LABELS = {"activated": "activated", "unchanged": "unchanged", "failed": "failed"}


Out = Annotated[
    str,
    typer.Option(
        help="Where the files to release are written: a folder, made if it does not exist, or s3://bucket/released."
    ),
]
RecipeName = Annotated[str, typer.Option(help="How photos are moved: see homing recipes.")]
BudgetName = Annotated[
    str | None,
    typer.Option(
        help="Where pixels may move how far: jnd, jnd-printed, jnd-uniform, or linf, the same everywhere.",
        show_default="the recipe's",
    ),
]
Psnr = Annotated[
    float | None, typer.Option(help="How near the file stays to the original, in dB.", show_default="43.8")
]
Alpha = Annotated[
    float | None,
    typer.Option(
        help="A strength instead of a PSNR: of jnd and jnd-uniform, 3 in the paper; of linf, in steps of 255."
    ),
]
Format = Annotated[
    str | None, typer.Option(help="Write jpeg, png, webp, tiff, avif, heic or bmp.", show_default="as the photo came")
]


def activate(
    collection: CollectionPath,
    out: Out,
    photos: OptionalPhotoSources = None,
    passive: Annotated[
        bool, typer.Option("--passive", help="Instead of naming photos: all that were added, but not activated yet.")
    ] = False,
    recipe: RecipeName = "homing",
    budget: BudgetName = None,
    psnr: Psnr = None,
    alpha: Alpha = None,
    format: Format = None,
    graphics: Annotated[
        bool,
        typer.Option("--graphics", help="Activate graphics of few colors too, such as logos and screenshots of text."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Index photos, move their pixels invisibly, check the result, and write what may be released.

    A photo is reported as activated only if its file, decoded again, lies nearer to its place in the index, in its
    own cell, and keeps the PSNR. Otherwise it is released unchanged, with the reason.

    Examples:

        homing activate holiday.homing photos/ --out released/

        homing activate holiday.homing beach.jpg --out released/ --psnr 46

        homing activate holiday.homing beach.jpg --out released/ --budget linf --alpha 4

        homing activate holiday.homing --state passive --out released/
    """
    from homing.errors import HomingError
    from homing.photo import format_name

    if bool(photos) == passive:
        raise HomingError("name the photos to activate, or ask for --state passive: all that are not activated yet")
    chosen = resolve_recipe(recipe, budget, psnr, alpha)
    if format is not None:
        format = format_name(format)
    run(
        collection,
        photos,
        "Activating",
        STATE_LABELS,
        json,
        lambda opened, report: (
            opened.activate(photos, out, recipe=chosen, format=format, report=report, processes=True, graphics=graphics)
            if photos
            else opened.activate_passive(
                out, recipe=chosen, format=format, report=report, processes=True, graphics=graphics
            )
        ),
    )


def resolve_recipe(recipe: str, budget: str | None, psnr: float | None, alpha: float | None) -> Recipe:
    """The recipe of this name, with another budget where one was asked for."""
    from homing.activation import recipe_named
    from homing.perception import budget_named

    chosen = recipe_named(recipe)
    kind = type(chosen.budget) if budget is None else budget_named(budget)
    if psnr is None and alpha is None:
        psnr, alpha = chosen.budget.psnr, chosen.budget.alpha
    return replace(chosen, budget=kind(psnr=psnr, alpha=alpha))

"""homing recipes: the recipes for activating photos."""

from __future__ import annotations

from homing.cli._console import JsonFlag, print_rows


def recipes(json: JsonFlag = False) -> None:
    """List the recipes for activating photos."""
    from homing.activation import RECIPES

    print_rows(
        [
            {
                "name": each.name,
                "objective": each.objective,
                "constraint": each.constraint,
                "steps": each.steps,
                "eot_samples": each.eot_samples,
                "lr": each.lr,
                "budget": str(each.budget),
                "about": each.summary,
            }
            for each in RECIPES.values()
        ],
        json,
    )

"""homing codebooks and recipes: what can be chosen."""

from __future__ import annotations

from homing.cli._console import JsonFlag, console, print_json, table


def codebooks(json: JsonFlag = False) -> None:
    """List the bundled codebooks. Train your own with: homing codebook train."""
    from homing.codebooks import available, load

    books = [load(name) for name in available()]
    show(
        [{"name": b.name, "spec": b.spec, "extractor": b.extractor, "fingerprint": b.fingerprint} for b in books], json
    )


def recipes(json: JsonFlag = False) -> None:
    """List the recipes for activating photos."""
    from homing.activation import RECIPES

    show(
        [
            {
                "name": r.name,
                "objective": r.objective,
                "constraint": r.constraint,
                "steps": r.steps,
                "eot_samples": r.eot_samples,
                "lr": r.lr,
                "budget": str(r.budget),
                "about": r.summary,
            }
            for r in RECIPES.values()
        ],
        json,
    )


def show(rows: list[dict[str, object]], json: bool) -> None:
    """Print rows as a table, or as one JSON document."""
    if json:
        print_json(rows)
        return
    shown = table(*rows[0])
    for row in rows:
        shown.add_row(*(str(value)[:12] if name == "fingerprint" else str(value) for name, value in row.items()))
    console.print(shown)

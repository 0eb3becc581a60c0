"""homing check: whether a collection is what it should be."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from homing.cli._screen import AsJson, CollectionPath, line, print_json, screen

Repair = Annotated[
    bool, typer.Option("--repair", help="Mend what can be mended without losing anything; no reference is deleted.")
]


def check(collection: CollectionPath, repair: Repair = False, json: AsJson = False) -> None:
    """Verify a collection: catalogue, codes, descriptors, codebook, index, and released files by their hashes.

    Exits with 0 if nothing is left to be mended, else with 1.

    Examples:

        homing check holiday.homing

        homing check holiday.homing --repair
    """
    from homing.collection import check as checked

    findings = checked(collection, repair=repair)
    left = sum(not finding.mended for finding in findings)
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            style = "green" if finding.mended else "red"
            screen.print(line(f"{'mended' if finding.mended else 'found':7} {finding}", style), soft_wrap=True)
        screen.print(_summary(left, len(findings) - left), highlight=False)
    raise typer.Exit(int(left > 0))


def _summary(left: int, mended: int) -> str:
    if not left and not mended:
        return "All is as it should be."
    return (
        ", ".join(f"{count:,} {word}" for count, word in ((mended, "mended"), (left, "left to be mended")) if count)
        + "."
    )

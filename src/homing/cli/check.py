"""homing check: verify a collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from homing.cli._console import CollectionPath, JsonFlag, console, one_line, print_json

Repair = Annotated[
    bool, typer.Option("--repair", help="Repair what can be repaired without loss. No reference is deleted.")
]


def check(collection: CollectionPath, repair: Repair = False, json: JsonFlag = False) -> None:
    """Check a collection: catalog, codes, descriptors, codebook, index, and released files by their hashes.

    The exit code is 0 if no problem is left, else 1.

    Examples:

        homing check holiday.homing

        homing check holiday.homing --repair
    """
    from homing.collection import check as checked

    findings = checked(collection, repair=repair)
    left = sum(not finding.repaired for finding in findings)
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            style = "green" if finding.repaired else "red"
            console.print(one_line(f"{'repaired' if finding.repaired else 'found':8} {finding}", style), soft_wrap=True)
        console.print(_summary(left, len(findings) - left), highlight=False)
    raise typer.Exit(int(left > 0))


def _summary(left: int, repaired: int) -> str:
    if not left and not repaired:
        return "No problems found."
    return (
        ", ".join(f"{count:,} {word}" for count, word in ((repaired, "repaired"), (left, "not repaired")) if count)
        + "."
    )

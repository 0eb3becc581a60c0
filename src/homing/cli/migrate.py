"""homing migrate: move a collection to another codebook."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._app import CollectionPath
from homing.cli._console import JsonFlag, console, print_json, print_remark
from homing.cli._progress import progress
from homing.errors import HomingError

if TYPE_CHECKING:
    from homing.collection import Migration


def migrate(
    collection: CollectionPath,
    codebook: Annotated[
        str | None, typer.Option(help="Build the next generation for this codebook: a bundled name, or a file.")
    ] = None,
    switch: Annotated[bool, typer.Option("--switch", help="Make the next generation the current one.")] = False,
    leave_missing: Annotated[
        bool, typer.Option("--leave-missing", help="Switch even if some photos could not be migrated.")
    ] = False,
    delete_previous: Annotated[
        bool, typer.Option("--delete-previous", help="Delete the generations before the current one.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --delete-previous: do not ask for confirmation.")] = False,
    json: JsonFlag = False,
) -> None:
    """Move a collection to another codebook.

    --codebook builds the next generation while searches use the current one. Run the same command
    again to resume it, or to include photos that were added meanwhile. It reports which activated photos keep their
    gain. Search the next generation with: homing search --generation next. --switch makes it the current one. The
    previous generation stays until you delete it.

    Examples:

        homing migrate holiday.homing --codebook mine.codebook

        homing migrate holiday.homing --switch

        homing migrate holiday.homing --delete-previous
    """
    from homing import collection as collection_package
    from homing.collection.migration import count

    if sum((codebook is not None, switch, delete_previous)) != 1:
        raise HomingError("give one of --codebook NAME_OR_FILE, --switch and --delete-previous")
    if leave_missing and not switch:
        raise HomingError("--leave-missing goes with --switch")
    if yes and not delete_previous:
        raise HomingError("--yes goes with --delete-previous")
    if delete_previous:
        _delete_previous(collection, yes, json)
        return
    if codebook is not None:
        with progress("Migrating", count(collection), unit="photos", resumable=True) as advance:
            done = collection_package.migrate(collection, codebook, advance=advance)
    else:
        done = collection_package.switch(collection, leave_missing=leave_missing)
    if json:
        print_json(asdict(done))
    else:
        _print_summary(done, "Switched to" if switch else "Built")
    raise typer.Exit(int(bool(done.missing) and not leave_missing))


def _delete_previous(collection: str, yes: bool, json: bool) -> None:
    from homing.collection import delete_previous

    asked = not yes and sys.stdin.isatty()
    if asked and not typer.confirm(f"Delete all generations before the current one of {collection}?", err=True):
        console.print("Nothing was deleted.")
        return
    delete_previous(collection)
    if not json:
        console.print(f"Deleted the previous generations of {collection}.")


def _print_summary(done: Migration, what: str) -> None:
    for reason in done.missing:
        print_remark("missing", reason, "red")
    for label, releases in (("again", done.gain_lost), ("unknown", done.gain_unknown)):
        for each in releases:
            print_remark(label, f"{each.photo}, released as {each.released}: {each.reason}")
    lost = f", {len(done.missing):,} are missing" if done.missing else ""
    console.print(
        f"{what} {done.generation}: {done.photos:,} photos, codebook {done.codebook}{lost}. Activated files:"
        f" {len(done.gain_kept):,} with their gain, {len(done.gain_lost):,} to activate again,"
        f" {len(done.gain_unknown):,} not checked."
    )

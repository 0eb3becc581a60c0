"""homing search: which references a photo is a copy of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._screen import AsJson, CollectionPath, PhotoPlaces, line, messages, print_json, progress, screen, table

if TYPE_CHECKING:
    from homing._places import Place
    from homing.collection import Match


def search(
    collection: CollectionPath,
    photos: PhotoPlaces,
    k: Annotated[int, typer.Option("-k", min=1, help="How many matches to show.")] = 10,
    probes: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many cells to look into; 1 is the paper's setting.", show_default="as many as stay fast"
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            help="In place of --probes: look into every cell whose centre is no more than this farther away than the "
            "nearest, in squared distance.",
        ),
    ] = None,
    turned: Annotated[
        bool, typer.Option("--turned", help="Search for the quarter turns and the mirror image of the photo as well.")
    ] = False,
    rerank: Annotated[
        int | None,
        typer.Option(min=1, help="Compare so many of the nearest again, by the full descriptors of their originals."),
    ] = None,
    generation: Annotated[
        str, typer.Option(help="Of a collection that migrates: current, next or previous.")
    ] = "current",
    json: AsJson = False,
) -> None:
    """Find the references nearest to each photo, nearest first. Distances: smaller is closer.

    Examples:

        homing search holiday.homing copy.jpg

        homing search holiday.homing suspicious/ -k 3 --json

        homing search holiday.homing mirrored.jpg --margin 0.1 --turned --rerank 100
    """
    from homing.collection import Collection
    from homing.errors import PhotoError
    from homing.photo import gather

    answers: list[tuple[Place, list[Match]]] = []
    failures: dict[Place, str] = {}
    found = gather(photos)
    with Collection.open(collection, generation=generation) as opened, progress("Searching", len(found)) as advance:
        for item in found:
            try:
                matches = opened.search(item.path, k=k, probes=probes, margin=margin, turned=turned, rerank=rerank)
                answers.append((item.path, matches))
            except PhotoError as error:
                failures[item.path] = str(error)
                messages.print(line(f"failed    {error}", "red"), soft_wrap=True)
            advance()
        nothing = "nothing in the cells looked into" if len(opened.index) else "the collection is empty: homing add"
    if json:
        found_by_query = [{"query": path, "matches": [vars(match) for match in matches]} for path, matches in answers]
        print_json(found_by_query + [{"query": path, "matches": [], "error": why} for path, why in failures.items()])
    else:
        for path, matches in answers:
            _show(path, matches, nothing)
        if failures:
            screen.print(f"{len(answers):,} searched, {len(failures):,} failed.", highlight=False)
    raise typer.Exit(int(bool(failures)))


def _show(query: Place, matches: list[Match], nothing: str) -> None:
    screen.print(line(query, "bold"), soft_wrap=True)
    rows = table("", "distance", "by", "photo", "state")
    for rank, match in enumerate(matches, start=1):
        rows.add_row(f"{rank:3}", f"{match.distance:.3f}", match.by, line(match.photo), match.state)
    screen.print(rows if matches else f"  {nothing}")

"""homing search: which references a photo is a copy of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._console import (
    CollectionPath,
    JsonFlag,
    PhotoSources,
    console,
    err_console,
    one_line,
    print_json,
    progress,
    table,
)

if TYPE_CHECKING:
    from homing._io.paths import Location
    from homing.collection import SearchResult


def search(
    collection: CollectionPath,
    photos: PhotoSources,
    k: Annotated[int, typer.Option("-k", min=1, help="How many matches to show.")] = 10,
    probes: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many cells to look into; 1 is the paper's setting.", show_default="as many as stay fast"
        ),
    ] = None,
    probe_radius: Annotated[
        float | None,
        typer.Option(
            help="In place of --probes: look into every cell whose center is no more than this farther away than the "
            "nearest, in squared distance.",
        ),
    ] = None,
    variants: Annotated[
        bool, typer.Option("--variants", help="Search for the quarter turns and the mirror image of the photo as well.")
    ] = False,
    rerank: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Compare so many of the nearest again, by full descriptors; 0: none.",
            show_default="100, without --probes and --probe-radius",
        ),
    ] = None,
    max_false_match: Annotated[
        float | None,
        typer.Option(help="Show only what an unrelated photo would find by at most this chance: 1e-3 or less."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with each photo beside its matches: FILE.html; needs homing[demo]."),
    ] = None,
    generation: Annotated[
        str, typer.Option(help="Of a collection that migrates: current, next or previous.")
    ] = "current",
    version: Annotated[
        int | None,
        typer.Option(min=1, help="Of a collection in Lance: as it was at this version.", show_default="as it is"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Find the references nearest to each photo, the least likely by chance first. Distances: smaller is closer.

    By chance: how likely a photo related to none of the references would find one this near.

    Examples:

        homing search holiday.homing copy.jpg

        homing search holiday.homing suspicious/ -k 3 --json

        homing search holiday.homing suspicious/ --max-false-match 1e-3

        homing search holiday.homing suspicious/ -k 1 --html matches.html

        homing search holiday.homing mirrored.jpg --probe-radius 0.1 --variants --rerank 100
    """
    from homing._extras import load_extra
    from homing._io.files import prepare_output_file
    from homing.collection import Collection
    from homing.errors import PhotoError
    from homing.photo import find_photos

    if html is not None:  # what is in its way is said before anything is searched for
        prepare_output_file(html, ".html")
        load_extra("skimage", extra="demo")
    answers: list[tuple[Location, SearchResult]] = []
    failures: dict[Location, str] = {}
    found = find_photos(photos)
    with Collection.open(collection, generation=generation, version=version) as opened:
        with progress("Searching", len(found)) as advance:
            for item in found:
                try:
                    result = opened.search(
                        item.path,
                        k=k,
                        probes=probes,
                        probe_radius=probe_radius,
                        variants=variants,
                        rerank=rerank,
                        max_false_match=max_false_match,
                    )
                    answers.append((item.path, result))
                except PhotoError as error:
                    failures[item.path] = str(error)
                    err_console.print(one_line(f"failed    {error}", "red"), soft_wrap=True)
                advance()
        plan = opened.plan_search(k, probes, probe_radius, rerank, variants=variants)
        if html is not None:
            from homing.evaluation.side_by_side import write_side_by_side

            with progress("Laying over each other", len(answers)) as advance:
                write_side_by_side(answers, html, opened.folder.catalog, advance)
    nothing = "nothing in the cells looked into" if plan.references else "the collection is empty: homing add"
    if plan.references and max_false_match is not None:
        nothing = f"no match whose chance is {max_false_match:g} or less"
    if json:
        found_by_query = [
            {
                "query": path,
                "verdict": result.verdict,
                "matches": [vars(match) for match in result],
                "search": vars(result.search),
            }
            for path, result in answers
        ]
        print_json(found_by_query + [{"query": path, "matches": [], "error": why} for path, why in failures.items()])
    else:
        for path, result in answers:
            _show(path, result, nothing)
        if answers:
            console.print(f"Searched {plan}.", highlight=False)
        if html is not None:
            console.print(f"The page: {html}", highlight=False)
        if failures:
            console.print(f"{len(answers):,} searched, {len(failures):,} failed.", highlight=False)
    raise typer.Exit(int(bool(failures)))


def _show(query: Location, result: SearchResult, nothing: str) -> None:
    from homing.collection.results import format_probability

    console.print(one_line(query, "bold"), soft_wrap=True)
    rows = table("", "distance", "compared", "false match", "photo", "state")
    for rank, match in enumerate(result, start=1):
        rows.add_row(
            f"{rank:3}",
            f"{match.distance:.3f}",
            match.compared,
            format_probability(match.false_match_probability),
            one_line(match.photo),
            match.state,
        )
    console.print(rows if result else f"  {nothing}")

"""homing search: find out which references a photo is a copy of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing._options import Option, setting
from homing.cli._app import CollectionPath, PhotoSources
from homing.cli._console import JsonFlag, console, one_line, print_failure, print_json, table
from homing.cli._progress import progress

if TYPE_CHECKING:
    from homing._io.paths import Location
    from homing.collection import Collection, SearchResult
    from homing.collection.search import SearchSettings

_COLORS = {"match": "green", "possible": "yellow", "none": "default"}


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of `Collection.search`."""

    k: int = setting(Option("How many matches to list.", name="-k", minimum=1), 10)
    probes: int | None = setting(
        Option(
            "How many cells to scan; 1 is the setting of the paper.",
            default_text="as many as hold 20,000 codes",
            minimum=1,
        ),
        None,
    )
    probe_radius: float | None = setting(
        Option(
            "Instead of --probes: scan all cells whose center is at most this much farther away than the nearest, in "
            "squared distance."
        ),
        None,
    )
    variants: bool = setting(Option("Search for the photo's quarter turns and mirror image as well."), False)
    rerank: int | None = setting(
        Option(
            "Re-rank this many of the nearest by full descriptors; 0: none.",
            default_text="100, or none with --probes or --probe-radius",
            minimum=0,
        ),
        None,
    )
    max_false_match: float | None = setting(
        Option("List only matches with at most this false-match probability, such as 1e-3."), None
    )


def search(
    *,
    collection: CollectionPath,
    photos: PhotoSources,
    options: SearchOptions,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with each photo beside its matches: FILE.html. It needs homing[demo]."),
    ] = None,
    generation: Annotated[
        str, typer.Option(help="In a migration: search the current, next or previous generation.")
    ] = "current",
    version: Annotated[
        int | None, typer.Option(min=1, help="In a Lance collection: search this version.", show_default="the latest")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Find out which references the photos are copies of.

    Each photo gets a verdict: match, possible match or no match. It depends on the false-match probability of the best
    match: how likely a photo unrelated to all references has a reference this near. 1 in 1,000 or less is a match,
    30 in 100 or less a possible match. A table lists the nearest references; a smaller distance is closer.

    Examples:

        homing search holiday.homing copy.jpg

        homing search holiday.homing suspicious/ -k 3 --json

        homing search holiday.homing suspicious/ --max-false-match 1e-3

        homing search holiday.homing suspicious/ -k 1 --html matches.html

        homing search holiday.homing mirrored.jpg --probe-radius 0.1 --variants --rerank 100
    """
    from homing._imports import load_extra
    from homing._io.files import prepare_output_file
    from homing.collection import Collection
    from homing.photo import find_photos

    if html is not None:  # fails before the search rather than after it
        prepare_output_file(html, ".html")
        load_extra("skimage", extra="demo")
    paths = [item.path for item in find_photos(photos)]
    with Collection.open(collection, generation=generation, version=version) as opened:
        results, failures = _search_each(opened, paths, options)
        if html is not None:
            from homing.reports import write_side_by_side

            with progress("Drawing matches", len(results)) as advance:
                write_side_by_side(results, html, opened.storage, advance)
    if json:
        print_json([_as_json(path, result) for path, result in results] + failures)
    else:
        _print_results(results, options.max_false_match)
        if html is not None:
            console.print(f"The page: {html}")
        if failures:
            console.print(f"{len(results):,} searched, {len(failures):,} failed.")
    raise typer.Exit(int(bool(failures)))


def _search_each(
    collection: Collection, paths: list[Location], options: SearchOptions
) -> tuple[list[tuple[Location, SearchResult]], list[dict[str, Any]]]:
    """The result of each photo that can be read, and a JSON object for each other."""
    from homing.collection.outcome import failed
    from homing.errors import PhotoError

    results: list[tuple[Location, SearchResult]] = []
    failures: list[dict[str, Any]] = []
    with progress("Searching", len(paths), unit="photos") as advance:
        for path in paths:
            try:
                results.append((path, collection.search(path, **vars(options))))
            except PhotoError as error:
                failures.append({"query": path, "reason": str(error), "verdict": None, "matches": [], "search": None})
                failure = failed(path, error)
                print_failure(f"{failure.photo}: {failure.reason}")
            advance()
    return results, failures


def _as_json(query: Location, result: SearchResult) -> dict[str, object]:
    return {
        "query": query,
        "verdict": result.verdict,
        "matches": [vars(match) | {"verdict": match.verdict} for match in result],
        "search": vars(result.settings),
    }


def _print_results(results: list[tuple[Location, SearchResult]], max_false_match: float | None) -> None:
    for query, result in results:
        _print_result(query, result, max_false_match)
    if results:
        console.print(f"Searched {results[0][1].settings}.")


def _print_result(query: Location, result: SearchResult, max_false_match: float | None) -> None:
    """The verdict in one line, then the matches as a table."""
    from homing.collection.search import VERDICT_TEXTS, format_probability

    line = one_line(f"{query}: ", "bold")
    line.append(VERDICT_TEXTS[result.verdict], style=f"bold {_COLORS[result.verdict]}")
    if result.best is not None:
        probability = format_probability(result.best.false_match_probability)
        best = "" if result.verdict != "none" else "the nearest is "
        line.append_text(one_line(f": {best}{result.best.photo}, false match {probability}"))
    elif not result:
        line.append_text(one_line(f": {_reason_for_no_match(result.settings, max_false_match)}"))
    console.print(line, soft_wrap=True)
    if not result:
        return
    rows = table("", "photo", "distance", "compared", "false match", "state")
    for rank, match in enumerate(result, start=1):
        rows.add_row(
            f"{rank:3}",
            one_line(match.photo),
            f"{match.distance:.3f}",
            match.compared,
            format_probability(match.false_match_probability),
            match.state,
        )
    console.print(rows)
    console.print()


def _reason_for_no_match(settings: SearchSettings, max_false_match: float | None) -> str:
    if not settings.references:
        return "the collection is empty; add photos with: homing add"
    if max_false_match is not None:
        return f"no reference has a false-match probability of {max_false_match:g} or less"
    return "the scanned cells are empty"

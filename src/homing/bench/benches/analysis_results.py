"""The report of the analysis bench: the paper's figure of distances, cells by edit, and a CSV row for each copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from homing.bench.benches.analysis import LABELS, SEED, AnalysisResult, AnalysisRow
from homing.bench.benches.analysis_figures import figures
from homing.bench.benches.compatibility import MAX_PHOTOS, Compatibility
from homing.bench.protocol.report import INTERVALS, common_numbers, summary_line
from homing.bench.published import IVF_FAILURE
from homing.bench.results import CsvTable, Results, Table

_GROUPS = ("released", "edited", "unrelated")


def results(result: AnalysisResult, command: str) -> Results:
    """The report."""
    return Results(
        title="Why edited copies are found",
        summary=f"Distances to the codes, and cells with one probe: {summary_line(result.codebook_results[0].run)}",
        command=command,
        numbers=common_numbers(
            [each.run for each in result.codebook_results],
            rows=[asdict(row) for row in result.rows],
            settings={
                "edits": LABELS,
                "recipes": list(dict.fromkeys(row.recipe for row in result.rows)),
                "distances": "squared",
                "unrelated_pairs": len(result.codebook_results[0].unrelated),
                "seed": SEED,
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        )
        | {"compatibility": [asdict(each.compatibility) for each in result.codebook_results if each.compatibility]},
        tables=[_distances(result), _cells(result), *_compatibility(result)],
        figures=list(figures(result.codebook_results)),
        csv_table=CsvTable(
            headings=["codebook", "recipe", "photo", "edit", "squared_distance", "same_cell", "rank"],
            rows=_copies(result),
        ),
    )


def terminal_table(result: AnalysisResult) -> list[list[str]]:
    """The table for a terminal, with a row for each edit."""
    rows = result.rows
    headings = ["", *(f"{row.codebook},\n{row.recipe}" for row in rows)]
    nothing = [""] * len(rows)
    lines = [
        ["mean squared distance to the code", *nothing],
        *([f"  {name}", *(f"{getattr(row, name).mean:.3f}" for row in rows)] for name in _GROUPS),
        ["p_f / recall, one probe", *nothing],
        *([f"  {label}", *(f"{_failure(row, label)} / {row.recall[label]:.2f}" for row in rows)] for label in LABELS),
    ]
    checks = [
        _unchanged(each.compatibility, row.row) for each in result.codebook_results for row in each.recipe_results
    ]
    if any(checks):
        lines.append(["other photos: same results", *checks])
    return [headings, *lines]


def _distances(result: AnalysisResult) -> Table:
    return Table(
        name="distances",
        caption="Squared distances to the code q(x_o) of the original, mean ± standard deviation: of the released "
        "file, of its copies (all fourteen edits; identity is the file itself), and of unrelated photos. "
        "For sign codes, distances are those of the index: with LSH the number of bits that differ, with RaBitQ its "
        "estimate.",
        headings=["codebook", "index", "recipe", *_GROUPS],
        rows=[
            [row.codebook, row.spec, row.recipe, *(f"{getattr(row, name):.3f}" for name in _GROUPS)]
            for row in result.rows
        ],
    )


def _cells(result: AnalysisResult) -> Table:
    """By edit: p_f and the recall, with the paper's p_f where it is published."""
    recipes = list(dict.fromkeys(row.recipe for row in result.rows))
    published = [recipe for recipe in recipes if recipe in IVF_FAILURE]
    rows, show_codebook = [], len(result.codebook_results) > 1
    for codebook_result in result.codebook_results:
        ours = {
            each.row.recipe: each.row for each in codebook_result.recipe_results
        }  # not every codebook supports activation
        for label in LABELS:
            cells = [cell for recipe in recipes for cell in _failure_and_recall(ours.get(recipe), label)]
            theirs = [f"{IVF_FAILURE[recipe]:.2f}" if label == "random" else "" for recipe in published]
            rows.append([label, *([codebook_result.run.codebook.name] if show_codebook else []), *cells, *theirs])
    return Table(
        name="cells",
        caption="By edit: p_f, the share of copies that fall into another cell than their original, and the recall "
        f"at rank 1 with one probe. {_bound(result)} Columns named SSCD are as published (Fernandez et al., 2023), for "
        "the random edit and IVF4096,PQ8x8.",
        headings=[
            "edit",
            *(["codebook"] if show_codebook else []),
            *(f"{name}, {recipe}" for recipe in recipes for name in ("p_f", "recall")),
            *(f"p_f, {recipe}, SSCD" for recipe in published),
        ],
        rows=rows,
        groups=range(0, len(rows), len(LABELS)),
    )


def _bound(result: AnalysisResult) -> str:
    """Whether the recall is within its bound 1 − p_f, as sentences."""
    without = [each.codebook for each in result.rows if each.recall_within_bound is None]
    sentences = []
    if any(row.recall_within_bound is not None for row in result.rows):
        within_bound = all(row.recall_within_bound is not False for row in result.rows)
        sentences.append(
            "The recall is at most 1 − p_f: no copy was found in another cell."
            if within_bound
            else "The recall should be at most 1 − p_f, but copies were found in other cells, at equal distance."
        )
    if without:
        names = ", ".join(dict.fromkeys(without))
        sentences.append(f"{names}: an index without cells has no p_f; every search compares all references.")
    return " ".join(sentences)


def _compatibility(result: AnalysisResult) -> list[Table]:
    checks = [each.compatibility for each in result.codebook_results if each.compatibility]
    if not checks:
        return []
    rows = [
        [
            compatibility.codebook,
            compatibility.recipe,
            f"{compatibility.activated} of {compatibility.photos}",
            str(compatibility.copies),
            f"{compatibility.before:.3f}",
            f"{compatibility.after:.3f}",
            _yes(compatibility.equal),
        ]
        for compatibility in checks
    ]
    return [
        Table(
            name="compatibility",
            caption="Results for photos that are not activated, before and after others in the same collection are: "
            "all their copies are searched for with one probe. The collection holds at most the first "
            f"{MAX_PHOTOS} photos, and no distractors.",
            headings=["codebook", "recipe", "activated", "copies of others", "recall before", "after", "same results"],
            rows=rows,
        )
    ]


def _copies(result: AnalysisResult) -> Iterator[list[object]]:
    """A row for each copy; no rank if its original is not among the nearest hundred."""
    for each in (
        recipe_result for codebook_result in result.codebook_results for recipe_result in codebook_result.recipe_results
    ):
        row = each.row
        for photo, source in enumerate(each.sources):
            for i, label in enumerate(LABELS):
                same = "" if row.failure is None else int(each.same_cell[photo, i])
                rank = int(each.ranks[photo, i])
                squared = f"{each.squared[photo, i]:.5f}"
                yield [row.codebook, row.recipe, source, label, squared, same, "" if rank < 0 else rank + 1]


def _failure_and_recall(row: AnalysisRow | None, label: str) -> list[str]:
    return ["", ""] if row is None else [_failure(row, label), f"{row.recall[label]:.2f}"]


def _failure(row: AnalysisRow, label: str) -> str:
    return "–" if row.failure is None else f"{row.failure[label]:.2f}"


def _unchanged(compatibility: Compatibility | None, row: AnalysisRow) -> str:
    """The table cell under the recipe that other photos were activated with."""
    return _yes(compatibility.equal) if compatibility and compatibility.recipe == row.recipe else ""


def _yes(really: bool) -> str:
    return "yes" if really else "no"

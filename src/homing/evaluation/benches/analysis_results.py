"""What the analysis bench found, told: the paper's figure of distances, the cells by edit, and every copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from homing.evaluation.benches.analysis import LABELS, SEED, AnalysisResult, Row
from homing.evaluation.benches.analysis_figures import figures
from homing.evaluation.benches.compatibility import MOST_PHOTOS, Compatibility
from homing.evaluation.protocol.told import INTERVALS, numbers, setting_line
from homing.evaluation.published import IVF_FAILURE
from homing.evaluation.results import Lines, Results, Table

_GROUPS = ("released", "edited", "unrelated")


def results(result: AnalysisResult, command: str) -> Results:
    """All there is to say."""
    return Results(
        title="Why edited copies come home",
        setting=f"Distances to the codes, and cells with one probe: {setting_line(result.measured[0].subject)}",
        command=command,
        numbers=numbers(
            [each.subject for each in result.measured],
            rows=[asdict(row) for row in result.rows],
            settings={
                "edits": LABELS,
                "recipes": list(dict.fromkeys(row.recipe for row in result.rows)),
                "distances": "squared",
                "unrelated_pairs": len(result.measured[0].unrelated),
                "seed": SEED,
                "intervals": INTERVALS,
            },
            seconds=result.seconds,
        )
        | {"compatibility": [asdict(each.compatibility) for each in result.measured if each.compatibility]},
        tables=[_distances(result), _cells(result), *_compatibility(result)],
        figures=list(figures(result.measured)),
        lines=Lines(
            headings=["codebook", "recipe", "photo", "edit", "squared_distance", "same_cell", "rank"],
            rows=_copies(result),
        ),
    )


def shown(result: AnalysisResult) -> list[list[str]]:
    """The table for a terminal, on its side: there are more edits than it has room for."""
    rows = result.rows
    headings = ["", *(f"{row.codebook},\n{row.recipe}" for row in rows)]
    nothing = [""] * len(rows)
    lines = [
        ["mean squared distance to the code", *nothing],
        *([f"  {name}", *(f"{getattr(row, name).mean:.3f}" for row in rows)] for name in _GROUPS),
        ["p_f / recall, one probe", *nothing],
        *([f"  {label}", *(f"{_failure(row, label)} / {row.recall[label]:.2f}" for row in rows)] for label in LABELS),
    ]
    checks = [_unchanged(each.compatibility, row.row) for each in result.measured for row in each.analysed]
    if any(checks):
        lines.append(["other photos' answers unchanged", *checks])
    return [headings, *lines]


def _distances(result: AnalysisResult) -> Table:
    return Table(
        name="distances",
        caption="Squared distances to the code q(x_o) of the original, mean ± standard deviation: of the released "
        "file, of its copies (all fourteen edits, of which identity is the file itself), and of unrelated photos. "
        "Of sign codes as the index finds them: with LSH the number of bits that differ, with RaBitQ its estimate.",
        headings=["codebook", "index", "recipe", *_GROUPS],
        rows=[
            [row.codebook, row.spec, row.recipe, *(f"{getattr(row, name):.3f}" for name in _GROUPS)]
            for row in result.rows
        ],
    )


def _cells(result: AnalysisResult) -> Table:
    """By edit: p_f and the recall it bounds, with the paper's p_f where it gives one."""
    recipes = list(dict.fromkeys(row.recipe for row in result.rows))
    published = [recipe for recipe in recipes if recipe in IVF_FAILURE]
    rows, several = [], len(result.measured) > 1
    for measured in result.measured:
        ours = {each.row.recipe: each.row for each in measured.analysed}  # not all can be activated
        for label in LABELS:
            cells = [cell for recipe in recipes for cell in _failure_and_recall(ours.get(recipe), label)]
            theirs = [f"{IVF_FAILURE[recipe]:.2f}" if label == "random" else "" for recipe in published]
            rows.append([label, *([measured.subject.codebook.name] if several else []), *cells, *theirs])
    return Table(
        name="cells",
        caption="By edit: p_f, the share of copies that leave the cell of their original, and the recall at rank 1 "
        f"with one probe. {_bound(result)} Columns named SSCD are as published (Fernandez et al., 2023), for the "
        "random edit and IVF4096,PQ8x8.",
        headings=[
            "edit",
            *(["codebook"] if several else []),
            *(f"{name}, {recipe}" for recipe in recipes for name in ("p_f", "recall")),
            *(f"p_f, {recipe}, SSCD" for recipe in published),
        ],
        rows=rows,
        groups=range(0, len(rows), len(LABELS)),
    )


def _bound(result: AnalysisResult) -> str:
    """Whether the recall stays below its bound, in words."""
    without = [each.codebook for each in result.rows if each.bounded is None]
    said = []
    if any(row.bounded is not None for row in result.rows):
        held = all(row.bounded is not False for row in result.rows)
        said.append(
            "The recall can be at most 1 − p_f, and is: no copy came home from another cell."
            if held
            else "The recall can be at most 1 − p_f, but copies came home from other cells: cells of equal distance."
        )
    if without:
        names = ", ".join(dict.fromkeys(without))
        said.append(f"{names}: an index without cells has no p_f, every search sees all references.")
    return " ".join(said)


def _compatibility(result: AnalysisResult) -> list[Table]:
    checks = [each.compatibility for each in result.measured if each.compatibility]
    if not checks:
        return []
    rows = [
        [
            check.codebook,
            check.recipe,
            f"{check.activated} of {check.photos}",
            str(check.copies),
            f"{check.before:.3f}",
            f"{check.after:.3f}",
            _yes(check.equal),
        ]
        for check in checks
    ]
    return [
        Table(
            name="compatibility",
            caption="Answers for photos that stay as they are, before and after others in the same collection are "
            "activated: all copies of them, searched for with one probe. The collection holds the first "
            f"{MOST_PHOTOS} photos at most, and no strangers.",
            headings=["codebook", "recipe", "activated", "copies of others", "recall before", "after", "same answers"],
            rows=rows,
        )
    ]


def _copies(result: AnalysisResult) -> Iterator[list[object]]:
    """A line for each copy; no rank where its original is not among the first hundred."""
    for each in (analysed for measured in result.measured for analysed in measured.analysed):
        row = each.row
        for photo, source in enumerate(each.sources):
            for place, label in enumerate(LABELS):
                same = "" if row.failure is None else int(each.same_cell[photo, place])
                rank = int(each.ranks[photo, place])
                squared = f"{each.squared[photo, place]:.5f}"
                yield [row.codebook, row.recipe, source, label, squared, same, "" if rank < 0 else rank + 1]


def _failure_and_recall(row: Row | None, label: str) -> list[str]:
    return ["", ""] if row is None else [_failure(row, label), f"{row.recall[label]:.2f}"]


def _failure(row: Row, label: str) -> str:
    return "–" if row.failure is None else f"{row.failure[label]:.2f}"


def _unchanged(check: Compatibility | None, row: Row) -> str:
    """What stands under the recipe that others were activated with."""
    return _yes(check.equal) if check and check.recipe == row.recipe else ""


def _yes(really: bool) -> str:
    return "yes" if really else "no"

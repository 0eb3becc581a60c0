"""homing bench: what the package does, measured on photos of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from homing.cli._screen import AsJson, messages, print_json, progress, screen, table

if TYPE_CHECKING:
    from homing.evaluation.retrieval import Probes
    from homing.evaluation.retrieval_bench import BenchResult

app = typer.Typer(help="Measure on photos of your own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Measure on photos of your own."""


@app.command("retrieval")
def retrieval(
    photos: Annotated[Path, typer.Option(help="The photos to release, edit and search for; unseen in training.")],
    background: Annotated[Path, typer.Option(help="Other photos: the strangers to search among.")],
    out: Annotated[Path, typer.Option(help="The folder for results, released files and the background's descriptors.")],
    strangers: Annotated[
        int, typer.Option(help="How many strangers: every background photo whole, then random crops of them.")
    ] = 300_000,
    codebook: Annotated[
        list[str] | None, typer.Option(help="A codebook's name or file; may be given often.", show_default="homing-1")
    ] = None,
    probes: Annotated[
        str, typer.Option(help="How many cells to look into, with commas between; exact: compare all descriptors.")
    ] = "1,16,exact",
    recipes: Annotated[
        str, typer.Option(help="Ways to release, with commas between; passive: as it is; see homing recipes.")
    ] = "passive,paper",
    limit: Annotated[int | None, typer.Option(help="Only the first photos.", show_default="all")] = None,
    json: AsJson = False,
) -> None:
    """Measure how many edited copies come home: photos are released, edited as others would, and searched for.

    The background's descriptors are kept in the out folder, so that the next bench with the same background starts
    at once.

    Example:

        homing bench retrieval --photos held-out/ --background others/ --strangers 100000 --out bench/
    """
    from homing.evaluation.retrieval_bench import RetrievalBench, run_retrieval_bench
    from homing.evaluation.retrieval_results import as_json, write_results

    bench = RetrievalBench(
        photos=photos,
        background=background,
        out=out,
        strangers=strangers,
        codebooks=codebook or ["homing-1"],
        probes=[_probes(text) for text in _listed(probes)],
        recipes=_listed(recipes),
        limit=limit,
    )
    result = run_retrieval_bench(bench, progress)
    write_results(result)
    for failure in result.failures:
        messages.print(Text(f"failed    {failure}", style="red"), soft_wrap=True)
    if json:
        print_json(as_json(result))
    else:
        _show(result)
    raise typer.Exit(int(bool(result.failures)))


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _probes(text: str) -> Probes:
    return int(text) if text.isdecimal() else cast("Probes", text)  # the bench refuses other words


def _show(result: BenchResult) -> None:
    """The table turned on its side: there are more edits than a terminal has room for."""
    from homing.evaluation.retrieval_results import setting

    screen.print(setting(result) + "\n", highlight=False)
    shown = table("edit", *(f"{row.codebook},\n{row.recipe},\n{_searched(row.probes)}" for row in result.rows))
    for edit in result.rows[0].recall:
        shown.add_row(edit, *(f"{row.recall[edit]:.2f}" for row in result.rows))
    shown.add_section()
    shown.add_row("mean", *(f"{row.mean:.3f}" for row in result.rows))
    shown.add_row("PSNR, dB", *("" if row.psnr is None else f"{row.psnr:.1f}" for row in result.rows))
    screen.print(shown)
    screen.print(f"\nTable, every search, and all numbers: {result.bench.out}", highlight=False)


def _searched(probes: Probes) -> str:
    if probes == "exact":
        return "exact"
    return "1 probe" if probes == 1 else f"{probes} probes"

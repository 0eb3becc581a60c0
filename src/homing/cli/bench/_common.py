"""Options of all benches, and how they print their results."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from homing.cli._console import console, err_console, print_json, table
from homing.cli._progress import progress
from homing.errors import HomingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from homing.bench.protocol.references import Probes
    from homing.bench.results import Results

Photos = Annotated[
    Path, typer.Option(help="The photos to release, edit and search for. They must not be training photos.")
]
DistractorPhotos = Annotated[
    Path | None,
    typer.Option(
        help="Other photos to search among, the distractors: a folder, or a .npy file of descriptors. By default the "
        "distractors bundled with the codebook: codes of photos of COCO train2017 (118,287 for homing-1).",
        show_default="bundled distractors",
    ),
]
Out = Annotated[Path, typer.Option(help="The folder for results, and for intermediate files that the next run reuses.")]
DistractorCount = Annotated[
    int,
    typer.Option(
        help="How many distractors: whole distractor photos first, then random crops of them. Bundled ones: at most "
        "all of them."
    ),
]
CodebookNames = Annotated[
    list[str] | None,
    typer.Option("--codebook", help="A codebook: a name or a file. Repeatable.", show_default="homing-1"),
]
IndexSpecs = Annotated[
    list[str] | None,
    typer.Option("--index", help="A FAISS factory string; its codebook is trained on --train-photos. Repeatable."),
]
TrainPhotos = Annotated[
    Path | None, typer.Option(help="What --index is trained on: a folder of photos, or a .npy file of descriptors.")
]
NetworkName = Annotated[
    str, typer.Option("--extractor", help="The network of --index; list networks with: homing extractors.")
]
DescriptorCount = Annotated[
    int | None,
    typer.Option(min=1, help="How many descriptors --index is trained on.", show_default="one per photo"),
]
RecipeNames = Annotated[
    str, typer.Option(help="Comma-separated recipes; passive: released as it is. List recipes with: homing recipes.")
]
ProbesText = Annotated[
    str, typer.Option(help="Comma-separated numbers of cells to scan; exact: compare all descriptors.")
]
Limit = Annotated[int | None, typer.Option(help="Use only the first photos.", show_default="all")]

resumable_progress = partial(progress, resumable=True)


def codebooks(named: list[str] | None, index: list[str] | None) -> list[str]:
    """The trained codebooks to measure; the default one if neither a codebook nor an index is given."""
    return named or ([] if index else ["homing-1"])


def split_list(text: str) -> list[str]:
    """The parts of a comma-separated list."""
    return [each.strip() for each in text.split(",")]


def parse_probes(text: str) -> list[Probes]:
    """Comma-separated numbers of probes. The bench refuses words other than "exact"."""
    return [int(each) if each.isdecimal() else cast("Probes", each) for each in split_list(text)]


def command_line(context: typer.Context) -> str:
    """The running command, as typed."""
    words = ["homing", *context.command_path.removeprefix(context.find_root().command_path).split()]
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[str(parameter.name)]
        if isinstance(value, bool):
            words += [parameter.opts[0]] * value
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words += [parameter.opts[0], str(each)] if parameter.param_type_name == "option" else [str(each)]
    return shlex.join(words)


def check_out_folder(context: typer.Context, out: Path) -> None:
    """Check extras and the out folder before hours of work."""
    from homing._extras import load_extra

    load_extra("matplotlib", extra="bench")
    try:
        before = json.loads((out / "results.json").read_text())["command"].split()[:3]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # no earlier results to lose
    if before != command_line(context).split()[:3]:
        raise HomingError(f"{out} holds the results of {' '.join(before)}; choose another --out")


def write_and_print(results: Results, out: Path, terminal_table: Sequence[Sequence[str]], *, as_json: bool) -> None:
    """Write the results and print them: `terminal_table` holds the headings and rows of one table. Ends the command."""
    from homing.bench.results import as_json as document, write_results

    write_results(results, out)
    written = document(results)
    failures = written.get("failures", [])
    assert isinstance(failures, list)
    for failure in failures:
        err_console.print(Text(f"failed    {failure}", style="red"), soft_wrap=True)
    if as_json:
        print_json(written)
    else:
        headings, *rows = terminal_table
        result = table(*headings)
        for row in rows:
            result.add_row(*row)
        console.print(results.summary + "\n", highlight=False)
        console.print(result)
        console.print(f"\nThe report: {out / 'report.html'}", highlight=False)
    raise typer.Exit(int(bool(failures)))

"""What all benches share on the command line: options, and the way results are told."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from homing.cli._console import console, err_console, print_json, progress, table
from homing.errors import HomingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from homing.evaluation.protocol.references import Probes
    from homing.evaluation.results import Results

Photos = Annotated[Path, typer.Option(help="The photos to release, edit and search for; unseen in training.")]
DistractorPhotos = Annotated[
    Path, typer.Option(help="Other photos, the distractors to search among; or a .npy file of descriptors.")
]
Out = Annotated[Path, typer.Option(help="The folder for results, and for all that the next run need not do again.")]
DistractorCount = Annotated[
    int, typer.Option(help="How many distractors: every distractor photo whole, then random crops of them.")
]
CodebookNames = Annotated[
    list[str] | None, typer.Option("--codebook", help="A name or a file; may be given often.", show_default="homing-1")
]
IndexSpecs = Annotated[
    list[str] | None,
    typer.Option(
        "--index", help="A FAISS factory string: a codebook of it is trained on --train-photos; may be given often."
    ),
]
TrainPhotos = Annotated[
    Path | None, typer.Option(help="What --index learns from: a folder of photos, or a .npy file of descriptors.")
]
NetworkName = Annotated[str, typer.Option("--extractor", help="The network of --index: see homing extractors.")]
DescriptorCount = Annotated[
    int | None,
    typer.Option(min=1, help="How many descriptors --index learns from.", show_default="one of each photo"),
]
RecipeNames = Annotated[
    str, typer.Option(help="Ways to release, with commas between; passive: as it is; see homing recipes.")
]
ProbesText = Annotated[
    str, typer.Option(help="How many cells to look into, with commas between; exact: compare all descriptors.")
]
Limit = Annotated[int | None, typer.Option(help="Only the first photos.", show_default="all")]

resumable_progress = partial(progress, resumable=True)


def codebooks(named: list[str] | None, index: list[str] | None) -> list[str]:
    """The finished codebooks to measure: the default one where nothing else is asked for."""
    return named or ([] if index else ["homing-1"])


def split_list(text: str) -> list[str]:
    """What stands between commas."""
    return [each.strip() for each in text.split(",")]


def parse_probes(text: str) -> list[Probes]:
    """Numbers of probes between commas; the bench refuses words other than exact."""
    return [int(each) if each.isdecimal() else cast("Probes", each) for each in split_list(text)]


def command_line(context: typer.Context) -> str:
    """The command that is running, as one would type it again."""
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
    """Refuse at once what would be refused after hours of work."""
    from homing._extras import load_extra

    load_extra("matplotlib", extra="bench")
    try:
        before = json.loads((out / "results.json").read_text())["command"].split()[:3]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # nothing there that could be lost
    if before != command_line(context).split()[:3]:
        raise HomingError(f"{out} holds the results of {' '.join(before)}; choose another --out")


def write_and_print(results: Results, out: Path, shown: Sequence[Sequence[str]], *, as_json: bool) -> None:
    """Write the results and show them: `shown` holds the headings and the rows of one table. Ends the command."""
    from homing.evaluation.results import as_json as document
    from homing.evaluation.results import write_results

    write_results(results, out)
    said = document(results)
    failures = said.get("failures", [])
    assert isinstance(failures, list)
    for failure in failures:
        err_console.print(Text(f"failed    {failure}", style="red"), soft_wrap=True)
    if as_json:
        print_json(said)
    else:
        headings, *rows = shown
        made = table(*headings)
        for row in rows:
            made.add_row(*row)
        console.print(results.summary + "\n", highlight=False)
        console.print(made)
        console.print(f"\nThe whole report: {out / 'report.html'}", highlight=False)
    raise typer.Exit(int(bool(failures)))

"""homing bench: benchmarks on your own photos, whose options are the settings of the bench; and homing demo."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homing.cli._app import App, Group
from homing.cli._console import JsonFlag, console, print_failure, print_json, print_remark, table
from homing.cli._progress import progress
from homing.errors import HomingError

if TYPE_CHECKING:
    from homing.bench.base import Bench, Settings


class _Commands(Mapping[str, Any]):
    """The commands by name, each made when it is asked for: `homing --help` imports no bench."""

    def __getitem__(self, name: str) -> Any:
        if name not in list(self):
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        from homing.bench.base import bench_names

        return iter(bench_names())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Benches(Group):
    """A command for each bench."""

    commands: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The commands for help. A bench of another package that cannot be loaded is one line on stderr."""
        names = []
        for name in self.commands:
            try:
                _command(name)
                names.append(name)
            except HomingError as error:
                print_remark("skipped", error)
        return names


app = App(cls=_Benches, help="Run benchmarks on your own photos.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Run benchmarks on your own photos."""


@cache
def _command(name: str) -> Any:
    """The command of a bench."""
    from homing.bench.base import load_bench

    bench = load_bench(name)

    def run(context: typer.Context, settings: Any, json: JsonFlag = False) -> None:
        _run(bench, settings, context, as_json=json)

    run.__annotations__["settings"] = bench.settings_class
    run.__doc__ = bench.__doc__
    single = App(add_completion=False, rich_markup_mode="markdown")
    single.command(name)(run)
    return typer.main.get_command(single)


def _run(bench_class: type[Bench], settings: Settings, context: typer.Context, *, as_json: bool) -> None:
    """Run a bench, write its results and print them. Ends the command."""
    command = _command_line(context)
    _check_out_folder(command, settings.out)
    bench = bench_class(settings, partial(progress, resumable=bench_class.resumable), command)
    results = bench.run()
    results.write(settings.out)
    for failure in bench.failures:
        print_failure(failure)
    if as_json:
        print_json(results.as_json())
    else:
        headings, rows = bench.terminal()
        printed = table(*headings)
        for row in rows:
            printed.add_row(*row)
        console.print(results.summary + "\n", highlight=False)
        console.print(printed)
        console.print(f"\nThe report: {settings.out / 'report.html'}", highlight=False)
    raise typer.Exit(int(bool(bench.failures)))


def _command_line(context: typer.Context) -> str:
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


def _check_out_folder(command: str, out: Path) -> None:
    """Check extras and the out folder before hours of work."""
    from homing._imports import load_extra

    load_extra("matplotlib", extra="bench")
    try:
        before = json.loads((out / "results.json").read_text())["command"].split()[:3]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # no earlier results to lose
    if before != command.split()[:3]:
        raise HomingError(f"{out} holds the results of {' '.join(before)}; choose another --out")


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("demo"), json: JsonFlag = False
) -> None:
    """Release a few photos passive and activated, edit the files, search for the copies, and compare the recall.

    Example:

        homing demo
    """
    from homing.bench.demo import run_demo, steps

    with progress("Releasing, editing, searching", steps()) as advance:
        result = run_demo(out, advance)
    if json:
        print_json(result.as_json())
        return
    photos = len(result.outcomes)
    console.print(
        f"{result.headline}.\n{result.default_search}.\n\n"
        f"Recall by edit: {photos} photos among {result.distractors:,} distractors.\n",
        highlight=False,
    )
    rows = table("edit", "passive,\none probe", "activated,\none probe", "passive,\ndefault", "activated,\ndefault")
    for edit, recalls in result.rows():
        if edit == "mean":
            rows.add_section()
        rows.add_row(edit, *(f"{recall:.2f}" for recall in recalls))
    console.print(rows)
    console.print(
        f"\nMeans of the activated files: PSNR {result.mean('psnr'):.1f} dB, SSIM {result.mean('ssim'):.3f}, "
        f"L∞ {result.mean('linf'):.0f} of 255; {result.seconds_per_photo:.1f} s per photo.\n"
        f"Report with pictures: {result.report}",
        highlight=False,
    )

"""The command line: one file per subject of commands. No module imports torch before a command needs it."""

from __future__ import annotations

import io
import sys
import warnings

import typer

from homing.cli import (
    bench,
    cluster,
    codebooks,
    collections,
    estimate,
    explain,
    migrate,
    networks,
    photos,
    search,
    serve,
)
from homing.cli._app import App
from homing.cli._console import report_error
from homing.cli._progress import start_command
from homing.errors import HomingError

app = App(
    name="homing",
    help="homing makes photos easy to recognize again.\n\nBefore a photo is released, its pixels are changed invisibly,"
    " so that a search finds its copies even when they are cropped, recompressed or captioned.",
    epilog="Start with:  homing init my.homing  ·  homing activate my.homing photos --out released  ·"
    "  homing search my.homing copy.jpg",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(collections.init)
app.command("add")(photos.add)
app.command("activate")(photos.activate)
app.command("remove")(photos.remove)
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.command("explain")(explain.explain)
app.command("compare")(explain.compare)
app.command("list")(collections.list_references)
app.command("info")(collections.info)
app.command("migrate")(migrate.migrate)
app.command("compact")(collections.compact)
app.command("export")(collections.export)
app.command("import")(collections.import_)
app.command("check")(collections.check)
app.command("estimate")(estimate.estimate)
app.command("codebooks")(codebooks.codebooks)
app.command("recipes")(photos.recipes)
app.command("demo")(bench.demo)
app.add_typer(networks.extractors_app, name="extractors")
app.add_typer(codebooks.app, name="codebook")
app.add_typer(bench.app, name="bench")
app.add_typer(networks.train_app, name="train")
app.add_typer(cluster.app, name="cluster")


def _version(wanted: bool) -> None:
    if wanted:
        from homing import __version__

        typer.echo(f"homing {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(  # noqa: ARG001  # its callback handles it
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options of homing itself."""
    start_command()


def main() -> None:
    """The `homing` command. Exit codes: 0 success, 1 some photos failed, 2 wrong call, 130 interrupted."""
    # Pillow warns of odd tags and of many megapixels; such photos are read anyway.
    warnings.filterwarnings("ignore", module="PIL")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show ∞ or ü
    try:
        app()
    except HomingError as error:
        sys.exit(report_error(error))
    except MemoryError:
        sys.exit(report_error("not enough memory; use fewer photos at once, or a smaller index"))

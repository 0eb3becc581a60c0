"""The command line: one file per command, none of which imports torch before it has work to do."""

from __future__ import annotations

import io
import sys
import warnings

import typer

from homing.cli import (
    activate,
    add,
    bench,
    check,
    cluster,
    codebook,
    compact,
    compare,
    demo,
    estimate,
    explain,
    export,
    extractors,
    info,
    init,
    listing,
    migrate,
    remove,
    search,
    serve,
    train,
)
from homing.cli._console import report_error
from homing.errors import HomingError

app = typer.Typer(
    name="homing",
    help="homing makes photos easy to recognize again.\n\nBefore a photo is released, its pixels move, invisibly, so"
    " that a search still finds most copies when they are cropped, recompressed or captioned.",
    epilog="Start with:  homing init my.homing  ·  homing activate my.homing photos --out released  ·"
    "  homing search my.homing copy.jpg",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(init.init)
app.command("add")(add.add)
app.command("activate")(activate.activate)
app.command("remove")(remove.remove)
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.command("explain")(explain.explain)
app.command("compare")(compare.compare)
app.command("info")(info.info)
app.command("migrate")(migrate.migrate)
app.command("compact")(compact.compact)
app.command("export")(export.export)
app.command("import")(export.import_)
app.command("check")(check.check)
app.command("estimate")(estimate.estimate)
app.command("codebooks")(listing.codebooks)
app.command("recipes")(listing.recipes)
app.command("demo")(demo.demo)
app.add_typer(extractors.app, name="extractors")
app.add_typer(codebook.app, name="codebook")
app.add_typer(bench.app, name="bench")
app.add_typer(train.app, name="train")
app.add_typer(cluster.app, name="cluster")


def _version(wanted: bool) -> None:
    if wanted:
        from homing import __version__

        typer.echo(f"homing {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Options of homing itself."""


def main() -> None:
    """The `homing` command. Exit codes: 0 all done, 1 some photos failed, 2 the call was wrong, 130 interrupted."""
    # Photos with odd tags or of many megapixels are read all the same; Pillow's remarks on them help nobody here.
    warnings.filterwarnings("ignore", module="PIL")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ∞ or ü shows something else for them
    try:
        app()
    except HomingError as error:
        sys.exit(report_error(error))
    except MemoryError:
        sys.exit(report_error("not enough memory; ask for less, or for a smaller index"))

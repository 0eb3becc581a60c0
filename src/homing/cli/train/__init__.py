"""homing train: train networks; one file per network."""

from __future__ import annotations

from homing.cli._app import App
from homing.cli.train import descriptor, hidden

app = App(help="Train networks of your own.", no_args_is_help=True)
app.command("descriptor")(descriptor.descriptor)
app.command("hidden")(hidden.hidden)


@app.callback()
def _group() -> None:
    """Train networks of your own."""

"""Options of commands from the fields of dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from homing import cli
from homing._options import Option, check_options, setting
from homing.cli._app import App
from homing.cli.photos import ActivateOptions
from homing.errors import HomingError


@dataclass(frozen=True, kw_only=True)
class Baking:
    """How a cake is baked."""

    degrees: int = setting(Option("How hot.", minimum=50, maximum=300))
    minutes: float = setting(Option("How long.", default_text="an hour"), 60.0)
    cake_name: str | None = setting(Option("What it is called.", name="--name"), None)
    fan: bool = setting(Option("With hot air."), False)
    layers: int = setting(Option("How many layers.", minimum=1), 1)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_options(self)


app = App()


@app.command()
def bake(*, oven: str = "gas", baking: Baking, plate: str = "round") -> None:
    """Bake a cake."""
    typer.echo(f"{oven} {baking} {plate}")


def test_a_command_has_an_option_for_each_field_and_gets_the_dataclass() -> None:
    run = CliRunner().invoke
    done = run(app, ["--degrees", "180", "--name", "Sacher", "--fan", "--plate", "oval"])
    assert done.output == f"gas {Baking(degrees=180, cake_name='Sacher', fan=True)} oval\n"
    assert "Missing option '--degrees'" in run(app, []).output
    assert run(app, ["--degrees", "180", "--layers", "0"]).exit_code == 2
    names = [option.opts[0] for option in get_command(app).params]
    assert names[:7] == ["--oven", "--degrees", "--minutes", "--name", "--fan", "--layers", "--plate"]
    help_page = run(app, ["--help"]).output
    assert "How hot." in help_page and "an hour" in help_page and "--no-fan" not in help_page


def test_values_outside_of_their_limits_are_refused() -> None:
    for degrees, says in ((49, "--degrees takes a value from 50 to 300, got 49"), (99.5, "a whole number, got 99.5")):
        with pytest.raises(HomingError, match=says):
            Baking(degrees=degrees)


@pytest.mark.parametrize("words", ["activate", "cluster activate"])
def test_every_option_of_an_activation_is_one_of_both_commands(words: str) -> None:
    command = get_command(cli.app)
    for word in words.split():
        command = command.commands[word]
    named = {option.name for option in command.params}
    assert {each.name for each in fields(ActivateOptions)} <= named

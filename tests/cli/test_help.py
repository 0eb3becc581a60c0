"""Help pages of all commands."""

from collections.abc import Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from homing.cli import app


def _pages(group: TyperGroup, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, entry in group.commands.items():
        if isinstance(entry, TyperGroup):
            yield from _pages(entry, (*words, name))
        else:
            yield (*words, name)


ROOT = get_command(app)
assert isinstance(ROOT, TyperGroup)


@pytest.mark.slow
@pytest.mark.parametrize("words", sorted(_pages(ROOT)), ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_and_shows_no_type_for_flags(words: tuple[str, ...], width: int) -> None:
    done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(width), "TERMINAL_WIDTH": str(width)})
    assert done.exit_code == 0
    assert "<bool>" not in done.stdout
    assert "…│" not in done.stdout
    assert all(len(line) <= width for line in done.stdout.splitlines())
    assert done.stdout.count("\n") > 5

"""Generate docs/reference/cli.md from the command-line interface.

python tools/cli_reference.py            write the page
python tools/cli_reference.py --check    exit with 1 if the page is not up to date
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.main import get_command

from homing.cli import app

Command = typer.core.TyperCommand | typer.core.TyperGroup
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
HEAD = """# Command line

This page is generated from the commands: `python tools/cli_reference.py` writes it, and `homing COMMAND --help` prints
the same text.

Results go to standard output, progress and messages to standard error. `--json` prints one JSON document
([JSON](json.md)). Exit codes: **0** everything is done, **1** some photos failed and the others are done, **2** wrong
arguments, **130** interrupted: finished work is saved, run the same command again to resume (`bench speed` starts
again).
"""


def leaves(group: typer.core.TyperGroup, prefix: str) -> Iterator[tuple[str, Command]]:
    """Yield every command that can be run, with its full name: also a group that runs without a subcommand."""
    for name, entry in group.commands.items():
        if isinstance(entry, typer.core.TyperGroup):
            if entry.invoke_without_command:
                yield f"{prefix} {name}", entry
            yield from leaves(entry, f"{prefix} {name}")
        else:
            assert isinstance(entry, typer.core.TyperCommand)
            yield f"{prefix} {name}", entry


def fenced(text: str) -> str:
    """Return help text with its indented examples as one code block."""

    def block(found: re.Match[str]) -> str:
        lines = [line.removeprefix("    ") for line in found[0].splitlines() if line]
        return "\n".join(["```sh", *lines, "```", "", ""])

    return re.sub(r"(?:^    .+(?:\n+|\Z))+", block, text, flags=re.MULTILINE).rstrip()


def in_a_line(text: str) -> str:
    """Return help text as one line for a table cell."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def default_of(option: typer.core.TyperOption) -> str:
    """Return the default as `--help` shows it, "required" in bold, or an empty string."""
    if option.required:
        return "**required**"
    if isinstance(option.show_default, str):
        return option.show_default
    if option.default is None or callable(option.default) or option.is_flag or option.default in ((), []):
        return ""
    values = option.default if isinstance(option.default, list | tuple) else [option.default]
    return f"`{','.join(str(getattr(value, 'value', value)) for value in values)}`"


def section(words: str, command: Command) -> str:
    """Return the section of one command: description, arguments and options."""
    arguments = [each for each in command.params if isinstance(each, typer.core.TyperArgument) and not each.hidden]
    options = [each for each in command.params if isinstance(each, typer.core.TyperOption) and not each.hidden]
    usage = " ".join([words, *("[OPTIONS]" for _ in options[:1])])
    usage = " ".join([usage, *(metavar(each) for each in arguments)])
    description = fenced(inspect.cleandoc(command.help or "").replace("\f", ""))
    lines = [f"## {words}", "", "```text", usage, "```", "", description, ""]
    if arguments:
        lines += ["| argument | |", "|---|---|"]
        lines += [f"| `{metavar(each)}` | {in_a_line(each.help or '')} |" for each in arguments]
        lines.append("")
    if options:
        lines += ["| option | | default |", "|---|---|---|"]
        for each in options:
            names = ", ".join(f"`{name}`" for name in [*each.opts, *each.secondary_opts])
            lines.append(f"| {names} | {in_a_line(each.help or '')} | {in_a_line(default_of(each))} |")
        lines.append("")
    return "\n".join(lines)


def metavar(argument: typer.core.TyperArgument) -> str:
    """Return the name of an argument in the usage line."""
    name = argument.metavar or (argument.name or "").upper()
    return f"{name}…" if argument.nargs == -1 and not name.endswith("…") else name


def page() -> str:
    """Return the whole page."""
    root = get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    return "\n".join([HEAD, *(section(words, command) for words, command in leaves(root, "homing"))])


def main() -> int:
    """Write the page, or compare it with the existing one."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print(f"{PAGE.name} is not up to date; run python tools/cli_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

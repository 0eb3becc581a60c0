"""The docs are complete, and their commands, names and figures are valid."""

import json
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from markdown_it import MarkdownIt
from typer.main import get_command

import homing
from homing import extractors
from homing.activation import RECIPES, Recipe
from homing.cli import app
from homing.training.settings import DescriptorSettings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RECIPES_PAGE = (ROOT / "docs" / "reference" / "recipes.md").read_text()
LANGUAGES = {"sh", "python", "json", "text", "toml", "{toctree}", "{eval-rst}"}
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def test_the_readmes_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test", "docs"} <= named <= targets


def test_the_figures_of_the_readme_equal_those_of_the_docs() -> None:
    results = (ROOT / "docs" / "reference" / "results.md").read_text()
    demo = dict(re.findall(r"^([a-z]+[-.0-9a-z]*) +(\d\.\d\d +\d\.\d\d) ", results, re.MULTILINE))
    rows = re.findall(r"^\| \**([a-z]+[-.0-9]*)\** +\| (\d\.\d\d) \| (\d\.\d\d) \|$", README, re.MULTILINE)
    assert len(rows) >= 6
    for edit, passive, activated in rows:
        assert demo[edit].split() == [passive, activated], edit
    card = (ROOT / "docs" / "reference" / "homing-1.md").read_text()
    shares = re.findall(r"^\| (passive|activated) \| (\S+) \| (\S+) \| (\S+) \|$", README, re.MULTILINE)
    assert len(shares) == 2
    for state, *figures in shares:
        recipe = "homing" if state == "activated" else state
        for probes, figure in zip(("1", "16", "exact"), figures, strict=True):
            assert re.search(rf"\| {probes} \|.*\| {recipe} \|.*\| {figure} \|$", card, re.MULTILINE), figure


def commands_in(page: Path) -> Iterator[list[str]]:
    """The homing commands in a page's code blocks and code spans, without comments."""
    text = re.sub(r"\\\n\s*", " ", page.read_text())
    for line in re.findall(r"^(homing [^\n]+)", text, re.MULTILINE) + re.findall(r"`(homing [^`]+)`", text):
        with suppress(ValueError):  # an apostrophe in prose
            yield shlex.split(re.sub(r"\s#.*|\s·.*", "", line))


def test_options_of_commands_in_the_docs_exist() -> None:
    root = get_command(app)
    for page in PAGES:
        for words in commands_in(page):
            command: Any = root
            rest = words[1:]
            while rest and isinstance(command, typer.core.TyperGroup) and rest[0] in command.commands:
                command, rest = command.commands[rest.pop(0)], rest
            options = {name for each in command.params for name in [*each.opts, *each.secondary_opts]} | {"--help"}
            given = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
            assert given <= options, f"{page.name}: {' '.join(words)}"


def commands_with_json(command: Any, name: str = "") -> Iterator[str]:
    """The names of commands that have --json, such as "cluster add"."""
    if any("--json" in option.opts for option in command.params):
        yield name.strip()
    for child, inner in getattr(command, "commands", {}).items():
        yield from commands_with_json(inner, f"{name} {child}")


def test_the_page_of_json_has_every_command_that_prints_it() -> None:
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    rows = re.findall(r"^\| ([a-z, ]+) \| [^|]*[\[{]", page, re.MULTILINE)
    documented = {
        f"cluster {each}" if row.startswith("cluster") else each
        for row in rows
        for each in row.removeprefix("cluster ").split(", ")
    }
    printed = {"bench" if re.match("bench (?!speed)", name) else name for name in commands_with_json(get_command(app))}
    assert documented == printed


def test_extras_are_installed_in_one_way() -> None:
    _, _, extras = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")
    known = set(re.findall(r"^([a-z0-9]+) = ", extras.partition("\n[")[0], re.MULTILINE))
    requested = [each for page in PAGES for each in re.findall(r"pip install ([^`\n]*\[[^`\n]*)", page.read_text())]
    assert requested
    for each in requested:
        named = re.match(r"-e '\.\[([a-z0-9,]+)\]'", each)
        assert named and set(named[1].split(",")) <= known, each


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))["page"]()
    assert (ROOT / "docs" / "reference" / "cli.md").read_text() == page, "run python tools/cli_reference.py"


@pytest.mark.parametrize("name", [*RECIPES, *extractors.available()])
def test_every_recipe_and_extractor_is_documented(name: str) -> None:
    assert f"`{name}`" in RECIPES_PAGE


def test_every_setting_of_a_recipe_is_documented() -> None:
    assert all(f"{field.name}=" in RECIPES_PAGE for field in fields(Recipe))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_a_target(page: Path) -> None:
    for address in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert address.startswith("https://") or (page.parent / address).exists(), address


def test_the_docs_have_the_defaults_of_training() -> None:
    rows = re.findall(
        r"^\| (`--[^|]*) \| ([^|]*) \|", (ROOT / "docs" / "how-to" / "training.md").read_text(), re.MULTILINE
    )
    reported = {
        name: value.strip("` ")
        for names, values in rows
        for name, value in zip(re.findall(r"`--([a-z-]+)`", names), values.split(","), strict=True)
    }
    assert reported == {
        field.name.replace("_", "-"): f"{field.default}".removesuffix(".0") for field in fields(DescriptorSettings)
    }


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "python.html").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_have_a_fence_with_their_language(page: Path) -> None:
    for token in MarkdownIt().parse(page.read_text()):
        assert token.type != "code_block", token.content
        assert token.type != "fence" or token.info in LANGUAGES, token.info or token.content


def test_prose_wraps_at_120() -> None:
    for page in PAGES:
        prose = re.sub(r"^(```|:::).*?^(```|:::)", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for line in prose.splitlines():
            assert len(line) <= 120 or line.startswith("|"), f"{page.name}: {line}"
    for cell in json.loads((ROOT / "examples" / "tensors.ipynb").read_text())["cells"]:
        assert all(len(line.rstrip("\n")) <= 120 for line in cell["source"])


def python_reference() -> tuple[list[str], dict[str, list[str]]]:
    """The names of `homing` on the page of the Python API, and the names of each package."""
    names, packages = (ROOT / "docs" / "reference" / "python.md").read_text().split("## Packages")
    listed = {}
    for package, members in re.findall(r"^\.\. automodule:: homing\.([\w.]+)\n   :(.*)$", packages, re.MULTILINE):
        module = import_module(f"homing.{package}")
        listed[package] = members.removeprefix("members: ").split(", ") if members.startswith("members: ") else []
        listed[package] += re.findall(rf"^\.\. (?:auto\w+|py:data):: homing\.{package}\.(\w+)$", packages, re.MULTILINE)
        if members == "members:":  # what is only data, such as the type of a value, has no docstring
            listed[package] += [name for name in module.__all__ if hasattr(getattr(module, name), "__module__")]
    return re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", names, re.MULTILINE), listed


def test_the_python_reference_documents_every_name() -> None:
    documented, packages = python_reference()
    assert len(documented) == len(set(documented))
    assert {*documented} == {*homing.__all__}
    assert {*documented, *packages} == {*dir(homing)}


def is_listed(module: ModuleType, name: str, listed: list[str]) -> bool:
    """Whether the reference lists a name of a package under the package, or above as a name of homing."""
    names = (name, f"{name}_{module.__name__.rpartition('.')[2]}", f"{name}_extractor")
    is_top = any(getattr(homing, each, None) is getattr(module, name) for each in names)
    return name in listed or is_top


def test_the_python_reference_documents_every_name_of_every_package() -> None:
    _, packages = python_reference()
    for package, listed in packages.items():
        module = import_module(f"homing.{package}")
        assert [name for name in module.__all__ if not is_listed(module, name, listed)] == [], package
        public = {*module.__all__}
        assert [name for name in listed if name not in public] == [], package


def test_functions_of_packages_that_the_docs_use_are_in_the_python_reference() -> None:
    names, packages = python_reference()
    pages = "\n".join(page.read_text() for page in PAGES)
    used = re.findall(r"\bhoming\.([a-z]\w*)\.(\w+)\(", pages)
    used += [
        (package, name)
        for package, imports in re.findall(r"\bfrom homing\.([a-z]\w*) import ([\w, ]+)$", pages, re.MULTILINE)
        for name in imports.split(", ")
    ]
    assert len(used) > 5
    for package, name in used:
        assert name in packages[package] or name in names, f"homing.{package}.{name}"


def test_files_named_in_the_docs_exist() -> None:
    for page in PAGES:
        for name in re.findall(
            r"\b((?:tests|tools|benchmarks|examples|src)/[\w./-]+\.(?:py|toml|ipynb))", page.read_text()
        ):
            assert (ROOT / name).is_file() or Path(name).stem in ("mynet", "mine"), f"{page.name}: {name}"


def test_the_ways_of_activate_and_search_name_functions() -> None:
    ways = re.findall(r"^\d+\. `homing\.([\w.]+)`", (ROOT / "docs/explanation/design.md").read_text(), re.MULTILINE)
    assert len(ways) == 20
    for way in ways:
        assert callable(pkgutil.resolve_name(f"homing.{way}")), way

"""Names and phrases that were replaced by standard vocabulary are not used again."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from homing import Recipe
from homing.cli import app

ROOT = Path(__file__).parents[1]
PYTHON = [
    path
    for folder in ("src", "tests", "tools", "benchmarks", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != Path(__file__)
]
TEXT = [
    *PYTHON,
    *(ROOT / name for name in ("docs/conf.py", "Makefile", "NOTICE", "pyproject.toml", ".ci/run")),
    *sorted((ROOT / "examples").glob("*.ipynb")),
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(path for ending in ("html", "js", "css", "toml") for path in sorted((ROOT / "src").rglob(f"*.{ending}"))),
]

PHRASES = {  # regular expressions between word boundaries, and what is said instead; in code, comments and docs
    "strangers?": "distractors, unrelated photos",
    "taught|teach(es|ing)?|learnt": "trained",
    "by chance": "false-match probability",
    "likeness": "density ratio",
    "loud(ness|er)?|quieter": "RMS, strength",
    "EvenJND|jnd-even": "UniformJND, jnd-uniform",
    "twins?": "differentiable edit",
    "foretell|foretold|forecasts?": "predict",
    "parcels?|clerks?|desks?": "batch, handler, catalog actor",
    "mend(s|ed|ing)?": "repair",
    "homing plan": "homing estimate",
    "leave-out-related": "--exclude-related",
    "com(e|es|ing) home|came home|find a home": "are found",
    "leaves? (its|their) cells?|left (its|their) cells?": "fall into another cell",
    "surer|how sure": "more certain, how certain",
    "carries it further|was told it|counts it out": "extrapolated, given, computed",
    "generations? (that )?answers?|forgotten": "current generation, deleted",
    "(is|are) home": "is found, is correct",
    "rooms?": "pixel bound; package",
    r"(?<!os\.)(?<!ast\.)walks?": "optimizer",
    "unrelated distances?": "null distribution",
    r"catalogues?(?!\.sqlite)": "catalog; the file of format 1 had this name",
    r"\w*(categor|character|custom|emphas|equal|final|general|initial|local|maxim|memor|minim|normal|optim|organ|parallel"
    r"|quant|random|real|recogn|regular|serial|special|standard|summar|synchron|token|util|vector|visual)"
    r"is(e[ds]?|ers?|ing|ations?)": "-ize",
    r"\w*(arm|behavi|col|fav|flav|harb|hon|hum|lab|neighb|rig|rum|sav|vap|vig)our(?!_volume)\w*": "-or, but in libheif",
    r"(cancel|channel|label|level|model|signal|total|travel|tunnel)l(ed|er|ers|ing)(?!\()": "American: one l",
    "centre[ds]?|(centi|kilo|milli)?metres?|litres?|fibres?|calibre": "-er",
    "grey|greyscale|licences?|defence|offence|analyse[dr]?|artefacts?|programmes?|ageing|whilst": "American spelling",
}
# What is defined in Python: classes, functions, arguments, variables, attributes.
IDENTIFIERS = """
    AwayError Bounded Carriers Coding Design Driver Foretell Gate GoneError Held Here Judge KeptRows LaidOver Loose
    Made Place Question Rates Ready Room SentOut Setting Squares Standing Subject Trial Way Wish _carrying _live
    _opened _places agree arrived asking background beside bodies came_home chance clerk compare_again courses desk
    drawn fading fast_probes fidelity fold_in forecast forget forgotten home in_stacks instead keeping lanes leg
    likeness looked_at loose loudness map_ahead meet mend mended of_each one_keeper outermost parcel pays_off place
    places pull room rooms saw settled showing standstill stranger strangers taught told turn_back turning twin
    walks
"""
ALLOWED = {  # a file and a name: why the name says what it means there
    ("src/homing/perception/jnd.py", "background"): "the JND model's own term: the mean brightness around a pixel",
    ("tests/perception/test_jnd.py", "background"): "the same",
}
MODULES = "answers asking bodies clerk courses desk keeping kept lanes parcel rooms running showing told twins walks"
RECIPE_FIELDS = {"rate", "fading", "power", "loose", "fidelity", "views", "margin"}
OPTIONS = """
    --background --even --false-matches --forget --leave-out-related --margin --mild --passive --show --strangers --sure
    --teach --turned
"""
COMMANDS = {"plan", "sure"}
KEYS = {"background", "by", "chance", "forgotten", "instead", "likeness", "mended", "plan", "strangers", "turned"}


def text_of(path: Path) -> str:
    """The text of a file; of a notebook that of its cells, without pictures."""
    if path.suffix != ".ipynb":
        return path.read_text()
    return "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])


def defined(path: Path) -> Iterator[tuple[int, str]]:
    """Every name that a file defines, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def keys(path: Path) -> Iterator[tuple[int, str]]:
    """The fields of classes, keys of dictionaries and columns of SQL tables in a Python file, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            yield from (
                (each.lineno, each.target.id)
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            )
        elif isinstance(node, ast.Dict):
            yield from ((each.lineno, str(each.value)) for each in node.keys if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and "CREATE TABLE" in str(node.value):
            yield from ((node.lineno, name) for name in re.findall(r"(\w+) (?:TEXT|INTEGER|REAL|BLOB)", node.value))


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_phrase_that_was_replaced_is_left(phrase: str) -> None:
    pattern = re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXT
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"say {PHRASES[phrase]}:\n" + "\n".join(found)


def test_no_identifier_that_was_replaced_is_left() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in PYTHON
        for line, name in defined(path)
        if name in IDENTIFIERS.split() and (str(path.relative_to(ROOT)), name) not in ALLOWED
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_option_or_command_that_was_replaced_is_left() -> None:
    groups = [get_command(app)]
    for group in groups:
        assert isinstance(group, TyperGroup)
        assert not set(group.commands) & COMMANDS
        for command in group.commands.values():
            if isinstance(command, TyperGroup):
                groups.append(command)
            assert not {name for each in command.params for name in each.opts} & set(OPTIONS.split()), command.name


@pytest.mark.parametrize("page", ["json.md", "http.md"])
def test_no_json_key_that_was_replaced_is_left(page: str) -> None:
    keys = set(re.findall(r'"(\w+)"', (ROOT / "docs" / "reference" / page).read_text()))
    assert len(keys) > 10
    assert not keys & KEYS


def test_no_key_that_was_replaced_is_left_in_the_code() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, name in keys(path)
        if name in KEYS
    ]
    for path in sorted((ROOT / "src").rglob("*.js")):
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if KEYS & set(re.findall(r"(?<=\.)\w+|\w+(?=\??:)|(?<=\")\w+(?=\")", line))
        ]
    assert not found, "\n" + "\n".join(found)


def test_no_module_has_a_name_that_was_replaced() -> None:
    assert not {path.stem for path in PYTHON} & set(MODULES.split())


def test_no_field_of_a_recipe_that_was_replaced_is_left() -> None:
    assert not {field.name for field in fields(Recipe)} & RECIPE_FIELDS


def test_every_exception_is_needed() -> None:
    assert all(name in {each for _, each in defined(ROOT / path)} for path, name in ALLOWED)

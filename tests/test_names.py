"""Names and phrases that were replaced by standard vocabulary are not used again."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
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
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
WEB = [path for ending in ("html", "js", "css") for path in sorted((ROOT / "src").rglob(f"*.{ending}"))]
TEXT = [
    *PYTHON,
    *(ROOT / name for name in ("docs/conf.py", "Makefile", "NOTICE", "pyproject.toml", ".ci/run")),
    *NOTEBOOKS,
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *WEB,
    *sorted((ROOT / "src").rglob("*.toml")),
]

# Regular expressions between word boundaries, each with an example and with what is said instead, in code and docs.
PHRASES = {
    "strangers?": ("among strangers", "distractors, unrelated photos"),
    "taught|teach(es|ing)?|learnt": ("to teach a network", "trained"),
    "by chance": ("found by chance", "false-match probability"),
    "likeness": ("the likeness of photos", "density ratio"),
    "loud(ness|er)?|quieter": ("a louder change", "RMS, strength"),
    "EvenJND|jnd-even": ("--budget jnd-even", "UniformJND, jnd-uniform"),
    "twins?": ("the twin of an edit", "differentiable edit"),
    "foretell|foretold|forecasts?": ("a forecast of the PSNR", "predict"),
    "parcels?|clerks?|desks?": ("a parcel of photos", "batch, handler, catalog actor"),
    "mend(s|ed|ing)?": ("what was mended", "repair"),
    "homing plan": ("homing plan --photos 1000", "homing estimate"),
    "leave-out-related": ("--leave-out-related", "--exclude-related"),
    "com(e|es|ing) home|came home|find a home": ("copies come\n# home", "are found"),
    "leaves? (its|their) cells?|left (its|their) cells?": ("copies leave their cell", "fall into another cell"),
    "surer|how sure": ("a surer match", "more certain, how certain"),
    "carries it further|was told it|counts it out": ("a plan carries it\nfurther", "extrapolated, given, computed"),
    "generations? (that )?answers?|forgotten": ("the generation that answers", "current generation, deleted"),
    "(is|are) home": ("the copy is home", "is found, is correct"),
    "rooms?": ("the room of a pixel", "pixel bound; package"),
    r"(?<!os\.)(?<!ast\.)walks?": ("a bounded walk", "optimizer"),
    "unrelated distances?": ("unrelated distances", "null distribution"),
    r"catalogues?(?!\.sqlite)": ("the catalogue", "catalog; the file of format 1 had this name"),
    r"(pixels?|channels?) (\w+ )?move[sd]?|mov(e|es|ed|ing) (\w+ )?(pixels?|channels?)": ("moves its pixels", "change"),
    "look(s|ed|ing)? into": ("a search looks into 16 cells", "probes, searches"),
    "in place of": ("in place of a PSNR", "instead of"),
    "set-ups?|data sets?|formulae": ("the paper's set-up", "setup, dataset, formulas"),
    r"\w*(categor|character|custom|emphas|equal|final|general|initial|local|maxim|memor|minim|normal|optim|organ|parallel"
    r"|quant|random|real|recogn|regular|serial|special|standard|summar|synchron|token|util|vector|visual)"
    r"is(e[ds]?|ers?|ing|ations?)": ("an optimiser", "-ize"),
    r"\w*(arm|behavi|col|fav|flav|harb|hon|hum|lab|neighb|rig|rum|sav|vap|vig)our(?!_volume)\w*": (
        "its neighbours",
        "-or, but in libheif",
    ),
    r"(cancel|channel|label|level|model|signal|total|travel|tunnel)l(ed|er|ers|ing)(?!\()": (
        "labelled rows",
        "American: one l",
    ),
    "centre[ds]?|(centi|kilo|milli)?metres?|litres?|fibres?|calibre": ("centred", "-er"),
    "grey|greyscale|licences?|defence|offence|analyse[dr]?|artefacts?|programmes?|ageing|whilst": (
        "a grey photo",
        "American spelling",
    ),
}


def names(text: str) -> set[str]:
    """The names in a text."""
    return set(text.split())


# Words that are in no name: `find_twin` and `TwinEdits` contain twin.
WORDS = names("""
    bounded clerk clerks desk desks forecast forecasts foretell foretold judge judged judges likeness loose loudness
    mend mended mends parcel parcels room rooms stranger strangers taught teach teaches twin twins walk walks
""")
# What is defined in Python: classes, functions, arguments, variables, attributes; private or not.
IDENTIFIERS = names("""
    AwayError Carriers Coding Design Driver Gate GoneError Held Here KeptRows LaidOver Made Place Question Rates
    Ready SentOut Setting Squares Standing Subject Trial Way Wish _carrying _live _opened _places agree arrived
    asking background beside bodies came_home chance compare_again courses drawn fading fast_probes fidelity fold_in
    forget forgotten home in_stacks instead keeping lanes leg looked_at map_ahead meet moved of_each one_keeper
    outermost pays_off place places pull saw settled showing shown standstill sure told turn_back turned turning
""")
ALLOWED = {  # a file and a name: why the name says what it means there
    ("src/homing/perception/budgets.py", "background"): "the JND model's own term: the mean brightness around a pixel",
    ("tests/perception/test_jnd.py", "background"): "the same",
    ("src/homing/bench/benches/analysis.py", "unrelated"): "distances of distractors, a histogram of the paper",
    ("src/homing/cli/_outcomes.py", "_moved"): "the number of photos whose files were moved",
    ("tests/cli/test_activation_report.py", "moved"): "a file that was moved",
    ("tests/collection/test_storage_collections.py", "moved"): "the same",
    ("tests/collection/test_generations.py", "moved"): "the same",
    ("tests/collection/test_memory_photos.py", "moved"): "a collection whose folder was moved",
    ("tests/collection/test_sources.py", "moved"): "a file that was moved",
    ("tests/service/test_service_limits.py", "test_upload_memory_is_bounded_and_freed"): "memory has a limit",
    ("tests/test_parallel.py", "test_the_number_of_started_items_is_bounded"): "the same",
}
MODULES = names("""
    answers asking bodies clerk courses desk keeping kept lanes parcel rooms running showing told twins walks
""")
RECIPE_FIELDS = {"rate", "fading", "power", "loose", "fidelity", "views", "margin"}
OPTIONS = names("""
    --background --even --false-matches --forget --leave-out-related --margin --mild --passive --show --strangers --sure
    --teach --turned
""")
COMMANDS = {"plan", "sure"}
KEYS = names("""
    background by chance counted forecast forgotten instead likeness mended moved_to plan room rooms strangers sure
    taught turned twin unrelated
""")


@cache
def text_of(path: Path) -> str:
    """The text of a file; of a notebook that of its cells, without pictures."""
    return "\n".join(text for _, text in cells(path)) if path in NOTEBOOKS else path.read_text()


def code_of(path: Path) -> str:
    """The code of a Python file or of a notebook."""
    return "\n".join(text for kind, text in cells(path) if kind == "code") if path in NOTEBOOKS else text_of(path)


def cells(notebook: Path) -> list[tuple[str, str]]:
    """The kind and text of each cell."""
    return [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(notebook.read_text())["cells"]]


def words_in(name: str) -> set[str]:
    """The words of a name, in lower case."""
    return {each.lower() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def is_allowed(path: Path, name: str) -> bool:
    """Whether a name has a reason to be in a file."""
    return (str(path.relative_to(ROOT)), name) in ALLOWED


def is_replaced(name: str) -> bool:
    """Whether a name, or a word in it, was replaced."""
    return bool({name, name.lstrip("_")} & IDENTIFIERS or words_in(name) & WORDS)


def defined(code: str) -> Iterator[tuple[int, str]]:
    """Every name that Python code defines, with its line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.lineno, node.rest


def keys(path: Path) -> Iterator[tuple[int, str]]:
    """The fields of classes, keys of dictionaries and columns of SQL tables in a Python file, with their lines."""
    for node in ast.walk(ast.parse(text_of(path))):
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


def test_files_of_all_kinds_are_checked() -> None:
    at_least = {".py": 400, ".ipynb": 1, ".md": 30, ".html": 3, ".js": 10, ".css": 1, ".toml": 2}
    found = Counter(path.suffix for path in TEXT)
    assert not {suffix: found[suffix] for suffix, count in at_least.items() if found[suffix] < count}
    assert all(path.is_file() for path in TEXT)


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_phrase_that_was_replaced_is_left(phrase: str) -> None:
    example, instead = PHRASES[phrase]
    anywhere = phrase.replace(" ", r"\s+(?:# +)?")  # over a line break, too, also in a comment
    pattern = re.compile(rf"\b(?:{anywhere})\b", re.IGNORECASE)
    assert pattern.search(example)
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in ((path, text_of(path)) for path in TEXT)
        for match in pattern.finditer(text)
    ]
    assert not found, f"say {instead}:\n" + "\n".join(found)


def test_no_identifier_that_was_replaced_is_left() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in (*PYTHON, *NOTEBOOKS)
        for line, name in defined(code_of(path))
        if is_replaced(name) and not is_allowed(path, name)
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_word_that_was_replaced_is_left_in_the_page() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in WEB
        for number, line in enumerate(text_of(path).splitlines(), 1)
        for name in re.findall(r"[A-Za-z]\w*", line)
        if words_in(name) & WORDS
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "name", ["_twin", "stranger_count", "taughtBy", "LooseAdam", "_walk", "JNDRoom", "ROOM", "_moved"]
)
def test_words_are_found_in_names(name: str) -> None:
    assert is_replaced(name)


def test_definitions_of_all_kinds_are_found() -> None:
    code = """
import a as b
class C:
    d: int
    def e(self, f, *g, h=0, **i):
        self.j, (k, *l) = f
        async def m(): ...
try:
    n = (o := 0)
except E as p: ...
for q in (r for s in a): ...
with a as t: ...
match a:
    case [u, *v]: ...
    case {"key": 0, **w}: ...
    case int() as x: ...
y = lambda z: z
"""
    assert {name for _, name in defined(code)} - {"self"} == set("bCdefghijklmnopqstuvwxyz")


def test_no_option_or_command_that_was_replaced_is_left() -> None:
    groups = [get_command(app)]
    for group in groups:
        assert isinstance(group, TyperGroup)
        assert not set(group.commands) & COMMANDS
        for command in group.commands.values():
            if isinstance(command, TyperGroup):
                groups.append(command)
            options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            assert not options & OPTIONS, command.name


@pytest.mark.parametrize("page", ["json.md", "http.md"])
def test_no_json_key_that_was_replaced_is_left(page: str) -> None:
    text = (ROOT / "docs" / "reference" / page).read_text()
    # Values of a field are separated by a vertical bar, escaped in tables.
    keys = {key for each in re.findall(r'"(\w+(?:\\?\|\w+)*)', text) for key in re.split(r"\\?\|", each)}
    assert len(keys) > 10
    assert not keys & KEYS


def test_no_key_that_was_replaced_is_left_in_the_code() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, name in keys(path)
        if name in KEYS and not is_allowed(path, name)
    ]
    for path in sorted((ROOT / "src").rglob("*.js")):
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(text_of(path).splitlines(), 1)
            if KEYS & set(re.findall(r"(?<=\.)\w+|\w+(?=\??:)|(?<=\")\w+(?=\")", line))
        ]
    assert not found, "\n" + "\n".join(found)


def test_no_module_or_folder_has_a_name_that_was_replaced() -> None:
    paths = [path.relative_to(ROOT) for path in (*PYTHON, *WEB)]
    assert not {name.lstrip("_") for path in paths for name in (*path.parts[:-1], path.stem)} & MODULES


def test_no_field_of_a_recipe_that_was_replaced_is_left() -> None:
    assert not {field.name for field in fields(Recipe)} & RECIPE_FIELDS


def test_every_exception_is_needed() -> None:
    assert all(name in {each for _, each in defined(code_of(ROOT / path))} for path, name in ALLOWED)

"""Lower rooms never import upper ones."""

import ast
from pathlib import Path

import pytest

import homing

PACKAGE = Path(homing.__file__).parent
LEVELS = [
    ["errors"],
    ["_constant", "_extras", "_files", "_machine", "_parallel", "_stacks"],
    ["_places"],
    ["photo", "edits"],
    ["perception", "extractors"],
    ["codebooks"],
    ["indexes", "objectives"],
    ["activation", "training"],
    ["collection", "planning", "watermarks"],
    ["cluster", "evaluation"],
    ["service"],
    ["cli"],
    ["__main__"],
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}


def imported(file: Path) -> set[str]:
    """The rooms a file imports, at its top or inside its functions."""
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "homing":
            rooms |= {name.name for name in node.names if name.name != "__version__"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("homing."):
            rooms.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {name.name.split(".")[1] for name in node.names if name.name.startswith("homing.")}
    return rooms


@pytest.mark.parametrize("room", sorted(LEVEL))
def test_a_room_imports_only_itself_and_lower_ones(room: str) -> None:
    files = [PACKAGE / f"{room}.py"] if (PACKAGE / f"{room}.py").is_file() else sorted((PACKAGE / room).rglob("*.py"))
    assert files
    for file in files:
        upper = {other for other in imported(file) if other != room and LEVEL[other] >= LEVEL[room]}
        assert not upper, f"{file} imports {upper}"


def test_every_room_has_its_level() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert rooms - {"__init__"} == set(LEVEL)

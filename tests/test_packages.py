"""Lower packages never import upper ones."""

import ast
from pathlib import Path

import pytest

import homing

PACKAGE = Path(homing.__file__).parent
LEVELS = [
    ["errors"],
    ["_imports", "_options", "_tensors"],
    ["_io"],
    ["photo", "edits"],
    ["perception", "extractors"],
    ["codebooks", "imaging"],
    ["indexes", "objectives"],
    ["activation", "training"],
    ["collection", "estimate", "watermarks"],
    ["api", "cluster", "explain"],
    ["bench", "reports", "service"],
    ["cli"],
    ["__main__"],
]
LEVEL = {package: level for level, packages in enumerate(LEVELS) for package in packages}


def imported(file: Path) -> set[str]:
    """The packages a file imports, at its top or inside its functions."""
    packages = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "homing":
            packages |= {name.name for name in node.names if name.name != "__version__"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("homing."):
            packages.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            packages |= {name.name.split(".")[1] for name in node.names if name.name.startswith("homing.")}
    return packages


@pytest.mark.parametrize("package", sorted(LEVEL))
def test_a_package_imports_only_itself_and_lower_ones(package: str) -> None:
    files = (
        [PACKAGE / f"{package}.py"]
        if (PACKAGE / f"{package}.py").is_file()
        else sorted((PACKAGE / package).rglob("*.py"))
    )
    assert files
    for file in files:
        upper = {other for other in imported(file) if other != package and LEVEL[other] >= LEVEL[package]}
        assert not upper, f"{file} imports {upper}"


def test_every_package_has_its_level() -> None:
    packages = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert packages - {"__init__"} == set(LEVEL)

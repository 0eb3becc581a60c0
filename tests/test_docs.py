"""What the docs say is there is there, and what is there is in the docs."""

import re
import runpy
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from PIL import Image

from homing import extractors
from homing.activation import RECIPES, Recipe
from homing.training.settings import DescriptorSettings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RECIPES_PAGE = (ROOT / "docs" / "reference" / "recipes.md").read_text()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


@pytest.fixture
def workspace(photos: Path, tmp_path: Path) -> Path:
    """A folder as a reader of the README has it: photos/beach.jpg and a copy of it."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "beach.jpg").write_bytes((photos / "flower.jpg").read_bytes())
    with Image.open(photos / "flower.jpg") as flower:
        flower.resize((300, 200)).save(tmp_path / "copy.jpg")
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_readmes_commands_run(workspace: Path) -> None:
    (script,) = (block for block in blocks("sh") if "homing init" in block)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=workspace,
        env={"PATH": path, "HOME": str(workspace)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 activated" in done.stdout
    assert "photos/beach.jpg" in done.stdout.replace("\n", "")
    assert (workspace / "difference.png").is_file()


def test_the_readmes_python_runs(workspace: Path) -> None:
    (script,) = blocks("python")
    done = subprocess.run([sys.executable, "-c", script], cwd=workspace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "activated" in done.stdout
    assert (workspace / "for-release" / "beach.jpg").is_file()


def test_the_readmes_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+) ", "\n".join(blocks("sh")))) <= targets


def test_extras_are_got_in_one_way() -> None:
    _, _, extras = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")
    known = set(re.findall(r"^([a-z0-9]+) = ", extras.partition("\n[")[0], re.MULTILINE))
    asked = [each for page in PAGES for each in re.findall(r"pip install (\S*\[\S*|-e \S*\[\S*)", page.read_text())]
    assert asked
    for each in asked:
        named = re.match(r"'homing\[([a-z0-9,]+)\]'", each)
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
def test_links_lead_somewhere(page: Path) -> None:
    for address in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert address.startswith("https://") or (page.parent / address).exists(), address


def test_the_defaults_of_training_are_those_in_the_docs() -> None:
    rows = re.findall(
        r"^\| (`--[^|]*) \| ([^|]*) \|", (ROOT / "docs" / "how-to" / "training.md").read_text(), re.MULTILINE
    )
    told = {
        name: value.strip("` ")
        for names, values in rows
        for name, value in zip(re.findall(r"`--([a-z-]+)`", names), values.split(","), strict=True)
    }
    assert told == {
        field.name.replace("_", "-"): f"{field.default}".removesuffix(".0") for field in fields(DescriptorSettings)
    }


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "python.html").is_file()


def test_files_that_pages_name_exist() -> None:
    for page in PAGES:
        for name in re.findall(
            r"\b((?:tests|tools|benchmarks|examples|src)/[\w./-]+\.(?:py|toml|ipynb))", page.read_text()
        ):
            assert (ROOT / name).is_file() or "mynet" in name, f"{page.name}: {name}"

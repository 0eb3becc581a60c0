"""Output files never overwrite photos or collections; control characters in file names are escaped."""

from pathlib import Path

import pytest
from tests.bench.helpers import homing

from homing.errors import HomingError


@pytest.fixture(scope="module")
def workspace(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out-files")
    (folder / "two\nlines\x1b[31m.jpg").write_bytes((photos / "rocket.jpg").read_bytes())
    (folder / "other.jpg").write_bytes((photos / "flower.jpg").read_bytes())
    homing("init", folder / "c.homing")
    homing("add", folder / "c.homing", folder)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["search", "c.homing", "other.jpg", "--html"],
        ["explain", "c.homing", "other.jpg", "--no-edits", "--out"],
        ["compare", "other.jpg", "other.jpg", "--out"],
    ],
)
@pytest.mark.parametrize("file", ["two\nlines\x1b[31m.jpg", "c.homing/catalog.sqlite"])
def test_files_of_other_kinds_are_not_overwritten(
    workspace: Path, command: list[str], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    before = Path(file).read_bytes()
    with pytest.raises(HomingError, match="the name of the output file must end in"):
        homing(*command, file)
    assert Path(file).read_bytes() == before


def test_explain_escapes_file_names(workspace: Path) -> None:
    output = homing("explain", workspace / "c.homing", workspace / "two\nlines\x1b[31m.jpg", "--no-edits")
    assert r"two\nlines\x1b[31m.jpg" in output


def test_a_huge_probe_radius_is_no_overflow(workspace: Path) -> None:
    assert "other.jpg" in homing("search", workspace / "c.homing", workspace / "other.jpg", "--probe-radius", "1e300")

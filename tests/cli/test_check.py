"""`homing check` on the command line."""

import json
from pathlib import Path

from tests.bench.helpers import homing, small_photos
from typer.testing import CliRunner

from homing.cli import app


def test_check_reports_and_repairs_problems(tmp_path: Path) -> None:
    path, released = tmp_path / "c.homing", tmp_path / "out" / "a.jpg"
    homing("init", path)
    homing(
        "activate", path, small_photos(tmp_path / "in", ["a"], 0), "--out", released.parent, "--recipe", "paper-fast"
    )
    assert homing("check", path) == "No problems found.\n"
    assert json.loads(homing("check", path, "--json")) == []
    (path / "codebook").unlink()
    found = homing("check", path, code=1).splitlines()
    assert len(found) == 2
    assert found[0].startswith(f"found    codebook: cannot read codebook {path / 'codebook'}")
    assert found[1] == "1 not repaired."
    away = released.rename(tmp_path / "away.jpg")
    output = json.loads(homing("check", path, "--repair", "--json", code=1))
    assert [(each["part"], each["repaired"]) for each in output] == [("codebook", True), ("release", False)]
    away.rename(released)
    assert homing("check", path) == "No problems found.\n"


def test_control_characters_in_file_names_are_escaped(tmp_path: Path) -> None:
    homing("init", tmp_path / "c.homing")
    (tmp_path / "two\nlines\x1b[31m.jpg").write_text("no photo")
    done = CliRunner().invoke(app, ["add", str(tmp_path / "c.homing"), str(tmp_path / "two\nlines\x1b[31m.jpg")])
    assert done.exit_code == 1
    assert r"two\nlines\x1b[31m.jpg" in done.stderr
    assert len(done.stderr.splitlines()) == 1

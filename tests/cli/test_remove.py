"""`homing remove`, and the output of `add` and `activate` for moved, changed and passive photos."""

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.commands import HOMING, homing

from homing import collection as collection_package


@pytest.fixture
def workspace(photos: Path, tmp_path: Path) -> Path:
    """A folder with photos and a collection of them."""
    shutil.copytree(photos, tmp_path / "photos")
    homing("init", tmp_path / "c.homing")
    homing("add", tmp_path / "c.homing", tmp_path / "photos")
    return tmp_path


def on_a_terminal(answer: bytes, *arguments: object) -> str:
    """The output of a command on a terminal where this reply is typed."""
    outer, inner = pty.openpty()
    job = subprocess.Popen(
        [HOMING, *map(str, arguments)], stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    os.write(outer, answer)
    output, _ = job.communicate(timeout=300)
    os.close(inner)
    os.close(outer)
    assert job.returncode == 0, output
    return output.decode()


def test_remove_counts_references_and_keeps_released_files(workspace: Path) -> None:
    homing(
        "activate",
        workspace / "c.homing",
        workspace / "photos" / "flower.jpg",
        "--out",
        workspace / "out",
        "--recipe",
        "paper-fast",
    )
    done = homing("remove", workspace / "c.homing", workspace / "photos")
    assert done.stdout == "4 references removed. The released files of 1 of them were not deleted.\n"
    assert (workspace / "out" / "flower.jpg").is_file()
    assert json.loads(homing("info", workspace / "c.homing", "--json").stdout)["photos"] == 0


def test_remove_by_the_id_of_a_match(workspace: Path) -> None:
    query = ("search", workspace / "c.homing", workspace / "photos" / "rocket.jpg", "-k", 1, "--json")
    number = json.loads(homing(*query).stdout)[0]["matches"][0]["id"]
    (reported,) = json.loads(homing("remove", workspace / "c.homing", number, "--json").stdout)
    assert (reported["state"], reported["photo"]) == ("removed", str(workspace / "photos" / "rocket.jpg"))
    assert json.loads(homing(*query).stdout)[0]["matches"][0]["id"] != number
    again = homing("remove", workspace / "c.homing", number, workspace / "photos" / "flower.jpg", code=1)
    assert f"{number}: no reference has this id" in again.stderr
    assert again.stdout == "1 reference removed.\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (str(2**63), "no reference has this id"),
        ("9" * 400, "no reference has this id"),
        ("9" * 5000, "no reference was added from this path, or from a folder of this name"),
        ("\u0661", "no reference was added from this path, or from a folder of this name"),  # an Arabic 1
    ],
    ids=["2**63", "400 digits", "5000 digits", "digits of another script"],
)
def test_a_number_that_cannot_be_an_id_is_no_reference(workspace: Path, text: str, reason: str) -> None:
    done = homing("remove", workspace / "c.homing", text, code=1)
    assert done.stderr == f"failed    {text}: {reason}\n"
    assert done.stdout == "0 references removed.\n"


def test_errors_are_one_line_and_an_empty_name_is_refused(workspace: Path) -> None:
    output = homing("remove", workspace / "c.homing", "", "two\nlines\x1b[31m", code=1).stderr
    assert output.splitlines()[0] == "failed    '': an empty name selects no reference"
    assert output.splitlines()[1].startswith(r"failed    two\nlines\x1b[31m: no reference")
    assert len(output.splitlines()) == 2


@pytest.mark.slow
def test_remove_asks_for_confirmation_on_a_terminal_only(workspace: Path) -> None:
    what = ("remove", workspace / "c.homing", workspace / "photos")
    output = on_a_terminal(b"n\n", *what)
    assert "Remove 4 references from" in output and "Nothing was removed." in output
    assert json.loads(homing("info", workspace / "c.homing", "--json").stdout)["photos"] == 4
    assert "4 references removed." in on_a_terminal(b"y\n", *what)
    homing("add", workspace / "c.homing", workspace / "photos")
    output = on_a_terminal(b"", *what, "--yes")
    assert "Remove 4" not in output and "4 references removed." in output


def test_add_counts_moved_and_replaced_photos(workspace: Path, photos: Path) -> None:
    (workspace / "photos" / "camera.png").rename(workspace / "photos" / "moved.png")
    shutil.copy(photos / "rocket.jpg", workspace / "photos" / "flower.jpg")
    with (workspace / "photos" / "flower.jpg").open("ab") as file:
        file.write(b"changed")
    done = homing("add", workspace / "c.homing", workspace / "photos", "--replace")
    assert done.stdout == "1 replaced, 1 moved, 2 known already.\n"


def test_activate_state_passive(workspace: Path) -> None:
    what = ("activate", workspace / "c.homing", "--out", workspace / "out", "--recipe", "paper-fast")
    (workspace / "photos" / "camera.png").unlink()
    done = homing(*what, "--state", "passive", code=1)
    assert "3 activated, 1 failed." in done.stdout and "camera.png" in done.stderr
    homing("remove", workspace / "c.homing", workspace / "photos" / "camera.png")
    assert homing(*what, "--state", "passive").stdout == "Nothing to do.\n"
    for wrong in ([], [workspace / "photos", "--state", "passive"]):
        assert "give either photos to activate or --state passive" in homing(*what, *wrong, code=2).stderr


def test_activate_counts_replaced_releases(workspace: Path) -> None:
    what = ("activate", workspace / "c.homing", workspace / "photos" / "flower.jpg", "--out", workspace / "out")
    first = json.loads(homing(*what, "--recipe", "paper-fast", "--json").stdout)
    assert [each["overwrote"] for each in first] == [False]
    before = (workspace / "out" / "flower.jpg").read_bytes()
    assert "replaced" not in homing(*what, "--recipe", "paper-fast").stdout, "the photo was released again"
    done = homing(*what, "--recipe", "homing-fast")
    assert done.stdout.startswith("1 activated, 1 of them replaced an earlier release. Mean of")
    assert (workspace / "out" / "flower.jpg").read_bytes() != before
    (workspace / "before.jpg").write_bytes(before)
    assert homing("add", workspace / "c.homing", workspace / "before.jpg").stdout == "1 known already.\n"


@pytest.mark.slow
def test_delete_previous_asks_for_confirmation_on_a_terminal_only(workspace: Path) -> None:
    what = ("migrate", workspace / "c.homing", "--delete-previous")
    collection_package.migrate(workspace / "c.homing", "imagenet-lite0")
    collection_package.switch(workspace / "c.homing")
    output = on_a_terminal(b"n\n", *what)
    assert "Delete all generations before" in output and "Nothing was deleted." in output
    assert (workspace / "c.homing" / "collection.toml").is_file()
    output = on_a_terminal(b"", *what, "--yes")
    assert "Delete all" not in output and "Deleted the previous generations" in output
    assert not (workspace / "c.homing" / "collection.toml").is_file()

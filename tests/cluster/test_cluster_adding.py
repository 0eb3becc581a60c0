"""Jobs on Ray add the same references as one process."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cluster.helpers import references, small_codebook
from tests.collection.tiny import tiny_photos
from typer.testing import CliRunner

from homing import cluster
from homing.cli import app
from homing.codebooks import Codebook
from homing.collection import Collection, Outcome
from homing.errors import BusyError, HomingError
from homing.photo import find_photos

pytestmark = pytest.mark.usefixtures("ray")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty photos, a duplicate of one, and a file that is not a photo."""
    paths = tiny_photos(tmp_path / "photos", 40)
    (tmp_path / "photos" / "0050.png").write_bytes(paths[0].read_bytes())
    (tmp_path / "photos" / "0051.jpg").write_text("no photo")
    return tmp_path / "photos"


def added(photos: Path, collection: Path, gpus: int = 0) -> list[Outcome]:
    outcomes: list[Outcome] = []
    resources = cluster.Resources(gpus=gpus)
    took = cluster.add(find_photos([photos]), str(collection), resources=resources, on_outcome=outcomes.append)
    assert [stage.stage for stage in took] == ["read", "decode", "describe", "record"]
    return outcomes


@pytest.mark.parametrize("gpus", [0, 1])
def test_references_equal_those_of_one_machine(folder: Path, photos: Path, tmp_path: Path, gpus: int) -> None:
    for photo in photos.iterdir():  # real photos too
        (folder / photo.name).write_bytes(photo.read_bytes())
    with Collection.create(tmp_path / "one.homing") as one:
        reported = one.add(folder)
        expected = references(one)
    Collection.create(tmp_path / "many.homing").close()
    outcomes = added(folder, tmp_path / "many.homing", gpus)
    with Collection.open(tmp_path / "many.homing") as many:
        on_ray = references(many)
        assert [row[:4] for row in on_ray] == [row[:4] for row in expected]
        assert len(expected) == 44
        # The last bits of a descriptor depend on the other photos of the batch.
        vectors = (np.frombuffer(b"".join(row[4] for row in rows), np.float16) for rows in (on_ray, expected))
        np.testing.assert_allclose(*vectors, atol=1e-3)
        assert many.check() == []
    assert sorted(outcomes, key=lambda each: each.photo) == sorted(reported, key=lambda each: each.photo)


def test_only_new_photos_are_added(folder: Path, tmp_path: Path, book: Codebook) -> None:
    Collection.create(tmp_path / "c.homing", codebook=book).close()
    first = added(folder, tmp_path / "c.homing")
    assert sorted(each.state for each in first) == ["added"] * 40 + ["failed", "known"]
    (folder / "0007.jpg").rename(folder / "0077.jpg")
    again = {Path(each.photo).name: each for each in added(folder, tmp_path / "c.homing")}
    assert (again["0077.jpg"].state, again["0077.jpg"].moved_from) == ("moved", str(folder / "0007.jpg"))
    assert sorted(each.state for each in again.values()) == ["failed"] + ["known"] * 40 + ["moved"]
    with Collection.open(tmp_path / "c.homing") as collection:
        assert len(references(collection)) == 40


def test_the_command_names_failures_and_prints_the_time_of_each_stage(
    folder: Path, tmp_path: Path, book: Codebook
) -> None:
    Collection.create(tmp_path / "c.homing", codebook=book).close()
    done = CliRunner().invoke(app, ["cluster", "add", str(folder), "--collection", str(tmp_path / "c.homing")])
    assert done.exit_code == 1, done.output
    assert "40 added, 1 known already, 1 failed." in done.stdout
    assert all(stage in done.stdout for stage in ("read", "decode", "describe", "record"))
    (line,) = done.stderr.splitlines()
    assert f"{folder / '0051.jpg'}: not a photo" in line
    (folder / "0051.jpg").unlink()
    done = CliRunner().invoke(
        app, ["cluster", "add", str(folder), "--collection", str(tmp_path / "c.homing"), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert '"known": 41' in done.stdout


def test_log_messages_of_ray_are_not_on_stdout(
    folder: Path, tmp_path: Path, book: Codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray._private.worker import print_to_stdstream

    add = cluster.add

    def noisy(*args: object, **more: object) -> object:
        print_to_stdstream({"lines": ["A worker died"], "pid": "raylet", "is_err": False}, ignore_prefix=False)
        return add(*args, **more)

    monkeypatch.setattr(cluster, "add", noisy)
    Collection.create(tmp_path / "c.homing", codebook=book).close()
    where = ["--collection", str(tmp_path / "c.homing")]
    done = CliRunner().invoke(app, ["cluster", "add", str(folder), *where, "--json"])
    assert json.loads(done.stdout)["counts"]["added"] == 40
    assert "A worker died" in done.stderr


def test_impossible_jobs_are_rejected_in_one_line(folder: Path, tmp_path: Path, book: Codebook) -> None:
    collection_path = tmp_path / "c.homing"
    with (
        Collection.create(collection_path, codebook=book) as collection,
        collection.lock_for_writing(),
        pytest.raises(BusyError),
    ):
        added(folder, collection_path)
    with pytest.raises(HomingError, match="2 GPUs requested, 1 available"):
        cluster.add(find_photos([folder]), str(collection_path), resources=cluster.Resources(gpus=2), on_outcome=print)
    with pytest.raises(HomingError, match="is not a collection"):
        added(folder, tmp_path / "none.homing")
    with pytest.raises(HomingError, match="in the memory of one process"):
        cluster.activate(find_photos([folder]), str(collection_path), "memory://out", recipe="paper", on_outcome=print)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:9", "[Errno 111] Connection refused"),
        ("127.0.0.1:99999999999999999999", "a port must be at most 65535, got 99999999999999999999"),
    ],
)
def test_an_unreachable_cluster_is_one_error_line(
    folder: Path, tmp_path: Path, book: Codebook, address: str, says: str
) -> None:
    Collection.create(tmp_path / "c.homing", codebook=book).close()
    command = ["cluster", "add", folder, "--collection", tmp_path / "c.homing", "--address", address]
    done = subprocess.run(
        [sys.executable, "-m", "homing", *map(str, command)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"cannot connect to Ray at {address}: {says}" in line


def test_a_missing_library_names_its_extra(folder: Path) -> None:
    code = (
        "import sys; sys.modules['ray'] = None\nfrom homing.cli import main\n"
        f"sys.argv = ['homing', 'cluster', 'add', {str(folder)!r}, '--collection', 'c.homing']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["homing: ray is missing; get it: pip install 'homing[ray]'"]


def test_jobs_fill_a_collection_in_lance(folder: Path, tmp_path: Path) -> None:
    book = small_codebook(tmp_path, "IVF8,PQ12x8")
    for name in ("c.homing", "c.lance"):
        Collection.create(tmp_path / name, codebook=book).close()
        assert sorted(each.state for each in added(folder, tmp_path / name)) == ["added"] * 40 + ["failed", "known"]
    assert {each.state for each in added(folder, tmp_path / "c.lance")} == {"known", "failed"}
    with Collection.open(tmp_path / "c.homing") as in_sqlite, Collection.open(tmp_path / "c.lance") as in_lance:
        assert in_lance.info().photos == 40 and in_lance.check() == []
        for photo in sorted(folder.glob("000*")):
            same = [[match.photo for match in each.search(photo, k=5, probes=8)] for each in (in_sqlite, in_lance)]
            assert same[0] == same[1]

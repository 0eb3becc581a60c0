"""`homing migrate`, `export` and `import`, and migrations that are killed."""

import json
import random
import sqlite3
import subprocess
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.commands import HOMING, homing, killed
from tests.conftest import descriptors, train
from torch import Tensor

from homing.collection import Collection
from homing.collection.references import NewPhotos


def test_a_collection_is_exported_imported_and_migrated(photos: Path, tmp_path: Path) -> None:
    first, again, query = tmp_path / "c", tmp_path / "again", photos / "flower.jpg"
    homing("init", first)
    homing("activate", first, photos, "--out", tmp_path / "out", "--recipe", "paper-fast")
    assert "4 photos" in homing("export", first, "--out", tmp_path / "export").stdout
    homing("import", again, tmp_path / "export")
    before = homing("search", first, query, "--json").stdout
    assert homing("search", again, query, "--json").stdout == before

    (tmp_path / "out" / "flower.jpg").unlink()
    done = json.loads(homing("migrate", again, "--codebook", "imagenet-lite0", "--json").stdout)
    assert (done["photos"], done["missing"]) == (4, [])
    assert len(done["gain_kept"]) + len(done["gain_lost"]) == 3
    assert homing("search", again, query, "--json").stdout == before
    assert "imagenet-lite0, when it is ready: homing migrate --switch" in _in_one_line("info", again)
    after = homing("search", again, query, "--generation", "next", "--json").stdout
    assert json.loads(after)[0]["matches"][0]["photo"] == str(query)
    switched = homing("migrate", again, "--switch")
    unknown = f"unknown   {query}, released as {tmp_path / 'out' / 'flower.jpg'}: its released file is missing"
    assert unknown in switched.stderr
    output = switched.stdout
    assert "to activate again, 1 not checked." in output
    assert homing("search", again, query, "--json").stdout == after
    assert homing("search", again, query, "--generation", "previous", "--json").stdout == before
    assert "homing-1, until: homing migrate --delete-previous" in _in_one_line("info", again)
    homing("migrate", again, "--delete-previous")
    assert homing("search", again, query, "--json").stdout == after
    about = json.loads(homing("info", again, "--json").stdout)
    assert [about[f"{which}codebook"] for which in ("", "next_", "previous_")] == ["imagenet-lite0", None, None]


def _in_one_line(*arguments) -> str:
    return " ".join(homing(*arguments).stdout.split())


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("migrate", "c"), "one of --codebook NAME_OR_FILE, --switch and --delete-previous"),
        (("migrate", "c", "--delete-previous", "--leave-missing"), "--leave-missing goes with --switch"),
        (("export", "c", "--out", "s3://bucket/e"), "export to a folder here"),
        (("export", "c", "--out", "e", "--format", "parket"), "did you mean 'parquet'"),
    ],
)
def test_wrong_calls_are_one_error_line(arguments, output: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Collection.create("c", codebook=train("PQ8x4")).close()
    done = homing(*arguments, code=2)
    assert output in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_photos_at_an_address_are_added_found_and_removed(photos: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as file:
        for each in photos.iterdir():
            file.write(each, each.name)
    address, collection = f"zip://::{tmp_path / 'photos.zip'}", tmp_path / "c"
    homing("init", collection)
    assert "4 added" in homing("add", collection, address).stdout
    flower = address.replace("://", "://flower.jpg")
    (found,) = json.loads(homing("search", collection, flower, "-k", 1, "--json").stdout)
    assert (found["query"], found["matches"][0]["photo"]) == (flower, flower)
    assert "1 reference removed" in homing("remove", collection, flower, "--yes").stdout
    output = homing("add", collection, "http://agency:sesame@127.0.0.1:9/photos/", code=2).stderr
    assert "http://***@127.0.0.1:9/photos/ cannot be read" in output
    assert len(output.strip().splitlines()) == 1


def test_switch_without_missing_photos_needs_leave_missing(photos: Path, tmp_path: Path) -> None:
    missing, collection = tmp_path / "missing.jpg", tmp_path / "c"
    missing.write_bytes((photos / "flower.jpg").read_bytes())
    homing("init", collection)
    homing("add", collection, missing, photos / "chelsea.png")
    missing.unlink()
    assert "1 are missing" in homing("migrate", collection, "--codebook", "imagenet-lite0", code=1).stdout
    assert "--leave-missing" in homing("migrate", collection, "--switch", code=2).stderr
    assert "1 photos" in homing("migrate", collection, "--switch", "--leave-missing").stdout


@pytest.mark.slow
def test_a_killed_migration_is_resumed(tmp_path: Path) -> None:
    count = 30_000
    path, book = tmp_path / "c", train("IVF16,PQ8x8")
    rows = descriptors(count, seed=1)
    with Collection.create(path, codebook=book) as collection:
        hashes, sources = [f"{n:064x}" for n in range(count)], [f"/{n}.jpg" for n in range(count)]
        collection.record(NewPhotos(hashes, sources, book.encode(rows), rows.numpy()))
    new = train("PQ8x8")
    new.write(tmp_path / "new.codebook")
    building = ("migrate", path, "--codebook", tmp_path / "new.codebook")
    rng, done = random.Random(0), 0
    for _ in range(4):
        until = rng.randrange(done, count)
        killed(*building, ready=lambda until=until: migrated_count(path) > until)
        assert migrated_count(path) >= done, "migrated references were lost"
        done = min(migrated_count(path), count - 1)
        assert search_outcome(path, rows) == (book.fingerprint, count, "/7.jpg")
    homing(*building)
    for which, fingerprints in (
        ("--switch", {book.fingerprint, new.fingerprint}),
        ("--delete-previous", {new.fingerprint}),
    ):
        for _ in range(3):
            moment = time.monotonic() + rng.uniform(0, 0.5)
            killed("migrate", path, which, ready=lambda moment=moment: time.monotonic() > moment)
            fingerprint, *others = search_outcome(path, rows)
            assert fingerprint in fingerprints, "the collection is in a state between the two generations"
            assert others == [count, "/7.jpg"]
        subprocess.run([HOMING, "migrate", str(path), which], check=False)  # fails if it is done already
    assert search_outcome(path, rows)[0] == new.fingerprint
    assert sorted(each.name for each in path.iterdir()) == ["current", "generation-2", "snapshot.lock", "writer.lock"]


def search_outcome(path: Path, rows: Tensor) -> tuple[str, int, str]:
    """The codebook, the number of references, and the match of the eighth photo."""
    with Collection.open(path) as opened:
        assert len(opened.index) == opened.info().photos
        (match,) = opened.search_descriptors(rows[7:8], k=1)[0]
        return opened.codebook.fingerprint, len(opened.index), match.photo


def migrated_count(path: Path) -> int:
    """The number of references of the next generation."""
    file = path / "generation-2" / "catalog.sqlite"
    if not file.is_file():
        return 0
    with closing(sqlite3.connect(file)) as database:
        return int(database.execute("SELECT count(*) FROM photos").fetchone()[0])

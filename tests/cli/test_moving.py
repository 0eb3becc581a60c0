"""Migrating, exporting and importing as a person or a script calls them; a process that is killed on the way."""

import json
import os
import random
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from test_cli import HOMING, homing
from tests.conftest import descriptors, train

from homing.collection import Collection
from homing.collection.catalogue import NewPhoto


def test_a_collection_is_exported_imported_and_migrated(photos: Path, tmp_path: Path) -> None:
    first, again, query = tmp_path / "c", tmp_path / "again", photos / "flower.jpg"
    homing("init", first)
    homing("activate", first, photos, "--out", tmp_path / "out", "--recipe", "paper-fast")
    assert "4 photos" in homing("export", first, "--out", tmp_path / "export").stdout
    homing("import", again, tmp_path / "export")
    before = homing("search", first, query, "--json").stdout
    assert homing("search", again, query, "--json").stdout == before

    done = json.loads(homing("migrate", again, "--codebook", "imagenet-lite0", "--json").stdout)
    assert (done["photos"], done["missing"]) == (4, [])
    assert len(done["keep"]) + len(done["again"]) == 4
    assert homing("search", again, query, "--json").stdout == before
    after = homing("search", again, query, "--generation", "next", "--json").stdout
    assert json.loads(after)[0]["matches"][0]["photo"] == str(query)
    told = homing("migrate", again, "--switch").stdout
    assert f"{len(done['keep'])} keep their gain, {len(done['again'])} should be activated again" in told
    assert homing("search", again, query, "--json").stdout == after
    assert homing("search", again, query, "--generation", "previous", "--json").stdout == before
    homing("migrate", again, "--forget")
    assert homing("search", again, query, "--json").stdout == after
    assert json.loads(homing("info", again, "--json").stdout)["codebook"] == "imagenet-lite0"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("migrate", "c"), "one of --codebook NAME_OR_FILE, --switch and --forget"),
        (("export", "c", "--out", "e", "--format", "parket"), "did you mean 'parquet'"),
    ],
)
def test_wrong_calls_are_told_in_one_line(arguments, told: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Collection.create("c", codebook=train("PQ8x4")).close()
    done = homing(*arguments, code=2)
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_killed_at_any_instant_a_migration_continues(tmp_path: Path) -> None:
    count = 30_000
    path, book = tmp_path / "c", train("IVF16,PQ8x8")
    rows = descriptors(count, seed=1)
    with Collection.create(path, codebook=book) as collection:
        codes = book.encode(rows)
        pairs = enumerate(zip(codes, rows.numpy(), strict=True))
        collection.record([NewPhoto(f"{n:064x}", f"/{n}.jpg", code, row) for n, (code, row) in pairs])
    new = train("PQ8x8")
    new.write(tmp_path / "new.codebook")
    migrating = [HOMING, "migrate", str(path), "--codebook", str(tmp_path / "new.codebook")]
    draw, done = random.Random(0), 0
    for _ in range(4):
        wanted = draw.randrange(done, count)
        process = subprocess.Popen(migrating, env=os.environ, stdout=subprocess.DEVNULL)
        while process.poll() is None and carried(path) <= wanted:
            time.sleep(0.002)
        process.kill()
        process.wait()
        assert carried(path) >= done, "what was carried over stays"
        done = min(carried(path), count - 1)
    homing("migrate", path, "--codebook", tmp_path / "new.codebook")
    switching = subprocess.Popen([HOMING, "migrate", str(path), "--switch"], stdout=subprocess.DEVNULL)
    while switching.poll() is None and not sealed(path):
        time.sleep(0.001)
    switching.kill()
    switching.wait()
    if not (path / "current").exists():
        homing("migrate", path, "--switch")
    with Collection.open(path) as opened:
        assert opened.codebook.fingerprint == new.fingerprint
        assert opened.info().photos == count
        assert len(opened.index) == count
        assert [match.photo for match in opened.search_descriptors(rows[7:8], k=1)[0]] == ["/7.jpg"]


def carried(path: Path) -> int:
    """How many references the next generation has."""
    return _ask(path / "generation-2", "SELECT count(*) FROM photos")


def sealed(path: Path) -> int:
    return _ask(path, "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'")


def _ask(folder: Path, query: str) -> int:
    if not (folder / "catalogue.sqlite").is_file():
        return 0
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as database:
        return int(database.execute(query).fetchone()[0])

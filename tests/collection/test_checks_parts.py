"""Checks and repairs of collections that are too damaged to open."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.collection.tiny import tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection, check
from homing.errors import CollectionError, FormatError


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    """An empty collection of the bundled codebook, with its distractors."""
    Collection.create(tmp_path / "b.homing", with_distractors=True).close()
    assert check(tmp_path / "b.homing") == []
    return tmp_path / "b.homing"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A collection of ten photos with a codebook that is not bundled."""
    with Collection.create(tmp_path / "o.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        collection.add(tiny_photos(tmp_path / "photos", 10))
    assert check(tmp_path / "o.homing") == []
    return tmp_path / "o.homing"


def execute(collection: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Run a statement on the catalog with plain SQLite."""
    with closing(sqlite3.connect(collection / "catalog.sqlite", isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        return database.execute(statement, values).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, b"", b"rubbish"])
@pytest.mark.parametrize("name", ["collection.toml", "codebook", "distractors"])
def test_bundled_files_are_restored(bundled: Path, name: str, content: bytes | None) -> None:
    part = bundled / name
    before = part.read_bytes()
    part.unlink()
    if content is not None:
        part.write_bytes(content)
    (found,) = check(bundled)
    assert (found.part, found.repaired) == ("settings" if name == "collection.toml" else name, False)
    (repaired,) = check(bundled, repair=True)
    assert repaired.repaired
    assert part.read_bytes() == before
    assert check(bundled) == []


def test_another_codebook_is_replaced_by_the_bundled_one(bundled: Path) -> None:
    tiny_codebook().write(bundled / "codebook")
    (finding,) = check(bundled)
    assert "is 'tiny'" in finding.problem
    assert all(each.repaired for each in check(bundled, repair=True))


def test_a_missing_custom_codebook_is_reported(own: Path) -> None:
    (own / "codebook").unlink()
    (finding,) = check(own, repair=True)
    assert not finding.repaired
    assert f"restore 'tiny' ({tiny_codebook().fingerprint[:12]}) as {own / 'codebook'}" in finding.action
    tiny_codebook().write(own / "codebook")
    assert check(own) == []


def test_damaged_settings_without_a_codebook_are_reported(own: Path) -> None:
    (own / "collection.toml").unlink()
    (own / "codebook").unlink()
    (finding,) = check(own, repair=True)
    assert not finding.repaired
    assert "cannot read codebook" in finding.action


@pytest.mark.parametrize("content", [b"rubbish" * 1000, b""])
def test_a_file_that_is_not_a_catalog_is_reported(own: Path, content: bytes) -> None:
    (own / "catalog.sqlite").write_bytes(content)
    (finding,) = check(own, repair=True)
    assert (finding.part, finding.repaired) == ("catalog", False)
    assert "restore catalog.sqlite from a backup" in finding.action


def test_a_missing_catalog_is_reported(own: Path) -> None:
    (own / "catalog.sqlite").unlink()
    (finding,) = check(own, repair=True)
    assert "restore catalog.sqlite from a backup" in finding.action
    assert not (own / "catalog.sqlite").exists()


def test_a_damaged_page_is_found(own: Path) -> None:
    ((page,),) = execute(own, "PRAGMA page_size")
    data = bytearray((own / "catalog.sqlite").read_bytes())
    data[page : 2 * page] = bytes(page)  # the root of a table
    (own / "catalog.sqlite").write_bytes(data)
    (finding,) = check(own, repair=True)
    assert (finding.part, finding.repaired) == ("catalog", False)


def test_a_damaged_sqlite_index_is_rebuilt(own: Path) -> None:
    # An index that is hidden from SQLite misses the rows inserted in the meantime.
    hidden = execute(own, "DELETE FROM sqlite_master WHERE name = 'releases_by_hash' RETURNING *")
    execute(own, "INSERT INTO releases SELECT id, 'p', 'activated', sha256, 'r', 1, 1, 1, NULL, 0, '' FROM photos")
    execute(own, "INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", *hidden[0])
    (found,) = check(own)
    assert "the database is damaged" in found.problem
    (repaired,) = check(own, repair=True)
    assert repaired.repaired
    assert check(own) == []


def test_rows_of_no_reference_are_found(own: Path) -> None:
    execute(own, "INSERT INTO descriptors VALUES (99, x'00')")
    (finding,) = check(own, repair=True)
    assert "row 99 of descriptors belongs to no existing reference" in finding.problem


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("where", ["collection.toml", "catalog"])
def test_another_format_is_not_changed(own: Path, where: str, version: int) -> None:
    if where == "collection.toml":
        (own / where).write_text(f"format = {version}\nparts = ['who knows']\n")
    else:
        assert execute(own, "PRAGMA user_version") == [(2,)]
        execute(own, f"PRAGMA user_version = {version}")
    advice = "upgrade homing" if version == 3 else "make a new collection and add the photos to it"
    for attempt in (Collection.open, Collection.create, lambda path: check(path, repair=True)):
        if where == "catalog" and attempt == Collection.create:
            continue
        with pytest.raises(CollectionError, match=f"has format {version}, this homing reads format 2; {advice}"):
            attempt(own)


def test_a_newer_catalog_with_damaged_settings_is_not_changed(own: Path) -> None:
    execute(own, "DROP TABLE removed")
    execute(own, "PRAGMA user_version = 3")
    (own / "collection.toml").write_text("rubbish")
    with pytest.raises(FormatError, match="has format 3"):
        check(own, repair=True)
    assert (own / "collection.toml").read_text() == "rubbish"
    with pytest.raises(CollectionError, match="cannot be read or is damaged"):
        Collection.open(own)
    assert execute(own, "SELECT * FROM sqlite_master WHERE tbl_name = 'removed'") == []


@pytest.mark.parametrize("wrong", ["fingerprint = 5", "codebook = ['a']", "extractor = 2020-01-01", "format = 'one'"])
def test_settings_of_a_wrong_type_get_one_line_and_are_repaired(own: Path, wrong: str) -> None:
    name, good = wrong.split(" = ")[0], (own / "collection.toml").read_text()
    lines = [wrong if line.startswith(f"{name} =") else line for line in good.splitlines()]
    (own / "collection.toml").write_text("\n".join(lines))
    for attempt in (Collection.open, Collection.create):
        with pytest.raises(CollectionError, match=r"damaged: .*repair it with: homing check"):
            attempt(own)
    assert [finding.repaired for finding in check(own, repair=True)] == [True]
    assert (own / "collection.toml").read_text() == good


def test_a_catalog_that_cannot_be_opened_gets_one_line(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 4)  # longer than SQLite accepts
    with pytest.raises(CollectionError, match=r"cannot open the catalog .*unable to open database file"):
        Collection.create(deep / "c.homing", codebook=tiny_codebook())
    assert list(deep.iterdir()) == []


def test_a_collection_with_the_files_of_format_1_gets_one_line(own: Path) -> None:
    (own / "catalog.sqlite").rename(own / "catalogue.sqlite")
    settings = (own / "collection.toml").read_text().replace("format = 2", "format = 1")
    (own / "collection.toml").write_text(settings)
    for attempt in (Collection.open, check):
        with pytest.raises(CollectionError, match="has format 1, this homing reads format 2; make a new collection"):
            attempt(own)


def test_a_folder_that_is_not_a_collection_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"make one with Collection\.create, or: homing init"):
        check(tmp_path, repair=True)
    assert list(tmp_path.iterdir()) == []


def test_opening_without_settings_names_the_repair(own: Path) -> None:
    (own / "collection.toml").unlink()
    with pytest.raises(CollectionError, match=r"collection\.toml is missing; restore it with: homing check"):
        Collection.open(own)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("UPDATE photos SET code = 'letters' WHERE id = 3", "has a code that is not bytes"),
        ("UPDATE photos SET code = 7 WHERE id = 3", "has a code that is not bytes"),
        ("UPDATE descriptors SET vector = 'letters' WHERE photo = 3", "has a descriptor that is not bytes"),
    ],
)
def test_values_that_are_not_bytes_are_reported_and_repaired(own: Path, tmp_path: Path, harm: str, words: str) -> None:
    execute(own, harm)
    (own / "index.faiss").unlink(missing_ok=True)
    with Collection.open(own, extractor=tiny_extractor()) as opened:
        with pytest.raises(CollectionError, match=r"homing check .* --repair"):
            opened.search(tmp_path / "photos" / "0000.png")
        with pytest.raises(CollectionError, match=r"reference 3, .* is damaged; repair it with: homing check"):
            opened.export(tmp_path / "export", format="faiss")
    found = check(own, repair=True, extractor=tiny_extractor())
    assert all(each.repaired for each in found)
    assert words in found[0].problem
    assert check(own) == []


def test_an_upload_without_a_reference_is_removed_with_its_temporary_files(own: Path) -> None:
    """Removing the temporary file first would update the time of its folder."""
    upload = own / "uploads" / ("0" * 64)
    upload.mkdir(parents=True)
    temporary = upload / ".0123456789abcdef.tmp"
    temporary.write_bytes(b"half")
    for each in (temporary, upload):
        os.utime(each, (0, 0))
    found = check(own, repair=True)
    assert [each.repaired for each in found] == [True] * len(found) != []
    assert not upload.exists()
    assert check(own) == []

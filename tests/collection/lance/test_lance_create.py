"""Create and open collections in Lance."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import boto3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing._io.paths import list_names, location, write_file
from homing.collection import Collection, check, delete_previous, migrate, switch
from homing.collection.storage import Parts, create_storage
from homing.collection.storage._lance_table import LanceTable, schemas
from homing.collection.storage.layout import delete_path
from homing.errors import CollectionError, HomingError


def test_open_and_create_reject_wrong_locations(address: str, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"make one with Collection\.create, or: homing init"):
        Collection.open(address)
    Collection.create(address, codebook=tiny_codebook(LANCE)).close()
    with pytest.raises(CollectionError, match="already is a collection"):
        Collection.create(address, codebook=tiny_codebook(LANCE))
    Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(LANCE)).close()
    with pytest.raises(HomingError, match="has no versions"):
        Collection.open(tmp_path / "c.homing", version=2)


def test_create_does_not_overwrite_references(address: str, tmp_path: Path) -> None:
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        created.add(tiny_photos(tmp_path / "photos", 2))
    settings = (location(address) / "collection.toml").read_bytes()
    for book in (tiny_codebook(LANCE), tiny_codebook("IVF8,PQ6x8")):
        delete_path(location(address) / "collection.toml")
        with pytest.raises(CollectionError, match=r"without collection\.toml"):
            Collection.create(address, codebook=book)
        write_file(location(address) / "collection.toml", settings, new=True)
    with Collection.open(address, extractor=tiny_extractor()) as opened:
        assert opened.info().photos == 2 and opened.check() == []


@pytest.mark.parametrize("name", ["notes.txt", "references.lance.old/data/one.lance", "generation-2/codebook"])
def test_create_rejects_folders_with_other_files(address: str, name: str) -> None:
    write_file(location(address) / "codebook", tiny_codebook(LANCE).to_bytes(), new=True)  # left by a killed init
    write_file(location(address) / name, b"mine", new=True)
    with pytest.raises(CollectionError, match="exists and is not empty; choose another name"):
        Collection.create(address, codebook=tiny_codebook(LANCE))
    assert sorted(list_names(location(address))) == sorted(["codebook", name.partition("/")[0]])


def test_a_rejected_create_leaves_nothing(tmp_path: Path) -> None:
    other, where = tmp_path / "other.lance", tmp_path / "photos.lance"
    with Collection.create(other, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        created.add(tiny_photos(tmp_path / "photos", 1))
    shutil.copytree(other / "references.lance", where / "references.lance")
    with pytest.raises(CollectionError, match="already holds 1 rows"):
        Collection.create(where, codebook=tiny_codebook(LANCE))
    assert list_names(where) == ["references.lance"]


def test_create_rejects_the_name_of_a_file(s3: str) -> None:
    write_file(location(f"{s3}/photos.lance"), b"mine", new=True)
    with pytest.raises(CollectionError, match="exists and is not empty; choose another name"):
        Collection.create(f"{s3}/photos.lance", codebook=tiny_codebook(LANCE))


def test_create_in_an_empty_bucket_folder(s3: str) -> None:
    boto3.client("s3").put_object(Bucket=s3.removeprefix("s3://"), Key="photos.lance/")
    with Collection.create(f"{s3}/photos.lance", codebook=tiny_codebook(LANCE)) as created:
        assert created.info().photos == 0


def test_create_rejects_a_collection_without_its_first_generation(address: str) -> None:
    Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()).close()
    migrate(address, tiny_codebook("IVF4,PQ12x8"), extractor=tiny_extractor())
    switch(address, extractor=tiny_extractor())
    delete_previous(address)
    with pytest.raises(CollectionError, match="already is a collection"):
        Collection.create(address, codebook=tiny_codebook(LANCE))


@pytest.mark.parametrize("wrong", ["s3://bucket/a%20b.lance", "s3://bucket/a#1.lance", "s3://", "ftp://server/c.lance"])
def test_create_rejects_unsupported_addresses(wrong: str) -> None:
    with pytest.raises(CollectionError, match="is not an address of a collection"):
        Collection.create(wrong, codebook=tiny_codebook(LANCE))


@pytest.mark.parametrize("wrong", ["\udcff.lance", "a\nb.lance", "a\x7fb.lance"])
def test_create_rejects_names_that_lance_cannot_read(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(CollectionError, match="Lance accepts only names"):
        Collection.create(tmp_path / wrong, codebook=tiny_codebook(LANCE))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".lance"])
def test_too_long_names_are_rejected(tmp_path: Path, name: str) -> None:
    for call in (
        Collection.open,
        partial(Collection.create, codebook=tiny_codebook(LANCE)),
        switch,
        delete_previous,
        check,
    ):
        with pytest.raises(CollectionError, match="cannot be read: File name too long"):
            call(tmp_path / name)


def test_create_completes_a_killed_init(address: str, tmp_path: Path) -> None:
    other = tiny_codebook("IVF8,PQ6x8")
    for name, schema in schemas(other).items():
        LanceTable.create(location(address) / name, schema)
    write_file(location(address) / ".0123456789abcdef.tmp", b"", new=True)
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        assert [each.state for each in created.add(tiny_photos(tmp_path / "photos", 2))] == ["added"] * 2


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A Parquet export of two references, one of them released."""
    with Collection.create(tmp_path / "c", codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as collection:
        photos = tiny_photos(tmp_path / "photos", 2)
        collection.add(photos)
        collection.activate(photos[0], tmp_path / "out", recipe=RECIPES[0])
        return collection.export(tmp_path / "export").out


def test_a_failed_import_leaves_nothing(address: str, export: Path) -> None:
    releases = pq.read_table(export / "releases.parquet")
    wrong = releases.set_column(0, releases.schema.field("photo"), pa.array([7], pa.int64()))
    pq.write_table(wrong, export / "releases.parquet")
    with pytest.raises(CollectionError, match=r"releases of references that photos\.parquet lacks; export it again"):
        Collection.from_export(address, export)
    assert not location(address).exists()
    pq.write_table(releases, export / "releases.parquet")
    with Collection.from_export(address, export, extractor=tiny_extractor()) as made:
        assert made.info().photos == 2 and made.info().passive == 1 and made.check() == []


def test_nothing_else_is_created_during_an_import(address: str, export: Path) -> None:
    where = location(address)

    def fill(_: object) -> None:
        with pytest.raises(CollectionError, match="exists and is not empty"):
            Collection.create(where, codebook=tiny_codebook(LANCE))
        with pytest.raises(CollectionError, match="another process is importing into"):
            Collection.from_export(where, export)

    create_storage(where, Parts(tiny_codebook(LANCE)), fill)
    with Collection.open(where, extractor=tiny_extractor()) as opened:
        assert opened.info().photos == 0 and opened.check() == []
    assert "importing" not in list_names(where)


def test_a_repair_does_not_complete_a_killed_import(export: Path, tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from homing.collection import Collection\n"
        "from homing.collection.storage.lance import LanceStorage\n"
        "LanceStorage.insert_releases = lambda *_: os._exit(9)\n"
        "Collection.from_export(*sys.argv[1:])"
    )
    where = tmp_path / "again.lance"
    assert subprocess.run([sys.executable, "-c", script, where, export], check=False).returncode == 9
    (finding,) = check(where, repair=True)
    assert not finding.repaired and "if an import was interrupted, delete the folder and import again" in str(finding)
    with pytest.raises(
        CollectionError, match=r"already holds 2 rows.*; if an import was interrupted, delete the folder"
    ):
        Collection.from_export(where, export)
    shutil.rmtree(where)
    with Collection.from_export(where, export, extractor=tiny_extractor()) as made:
        assert made.info().photos == 2 and made.check() == []


def test_create_in_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "photos.lance").mkdir()
    with Collection.create(tmp_path / "photos.lance", codebook=tiny_codebook(LANCE)) as created:
        assert created.storage.version is not None


def test_open_after_renaming(tmp_path: Path) -> None:
    Collection.create(tmp_path / "a.lance", codebook=tiny_codebook(LANCE)).close()
    (tmp_path / "a.lance").rename(tmp_path / "archive")
    with Collection.open(tmp_path / "archive", extractor=tiny_extractor()) as opened:
        (photo,) = tiny_photos(tmp_path / "photos", 1)
        opened.add(photo)
        number = opened.storage.find(hashlib.sha256(photo.read_bytes()).hexdigest())
        assert number is not None and list(opened.storage.hashes_of([number, 77])) == [number]
        (vectors,) = opened.storage.descriptors(np.array([number])).values()
        assert torch.linalg.norm(torch.from_numpy(vectors[0])).item() == pytest.approx(1, abs=1e-5)


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['lance'] = None\n"
        "from homing.__main__ import main; sys.argv = ['homing', 'init', 'p.lance']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "homing: lance is missing; get it: pip install 'homing[lance]'"

"""Exports are readable with pyarrow, FAISS and NumPy alone, and a Parquet export can be imported without loss."""

import re
import shutil
import sqlite3
from pathlib import Path
from uuid import uuid4

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.collection import memory_storage  # noqa: F401, registers its storage
from tests.conftest import descriptors, train

from homing._io.paths import list_names, location
from homing.codebooks import Codebook
from homing.collection import Collection, migrate
from homing.collection.references import NewPhotos
from homing.errors import CodebookError, CollectionError, HomingError, UnknownNameError

SPECS = ["IVF4,PQ8x8", "IVF16,PQ8x4fs", "OPQ8_16,PQ8x6", "PCA16,IVF4,PQ4x8", "HNSW8,PQ8x4", "PCA16,LSH", "IVF4,RaBitQ"]


def filled(folder: Path, book: Codebook, count: int = 400) -> Collection:
    """A collection of random descriptors under names that CSV and Parquet must quote."""
    collection = Collection.create(folder, codebook=book)
    rows = descriptors(count, seed=1, dim=book.dim)
    hashes = [f"{number:064x}" for number in range(count)]
    sources = [f'/photos/ü, "{number}"\n.jpg' for number in range(count)]
    collection.record(NewPhotos(hashes, sources, book.encode(rows), rows.numpy()))
    return collection


def tables(path: Path) -> list[list[tuple]]:
    """All rows of the catalog's tables."""
    with sqlite3.connect(path / "catalog.sqlite") as database:
        return [
            database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in ("photos", "descriptors", "releases", "released_descriptors")
        ]


@pytest.fixture(scope="module")
def released(photos: Path, extractor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection of two released and two passive photos among distractors."""
    folder = tmp_path_factory.mktemp("released")
    with Collection.create(folder / "c", with_distractors=True, extractor=extractor) as collection:
        collection.add(photos)
        to_activate = [photos / "flower.jpg", photos / "rocket.jpg"]
        collection.activate(to_activate, folder / "out", recipe="paper-fast")
    return folder


def test_parquet_round_trip(released: Path, photos: Path, extractor, tmp_path) -> None:
    with Collection.open(released / "c", extractor=extractor) as collection:
        done = collection.export(tmp_path / "export")
        before = [collection.search(path, rerank=10) for path in sorted(photos.iterdir())]
    assert done.photos == 4
    assert done.files == ["README.md", "codebook", "distractors", "photos.parquet", "releases.parquet"]
    with Collection.from_export(tmp_path / "again", tmp_path / "export", extractor=extractor) as again:
        assert [again.search(path, rerank=10) for path in sorted(photos.iterdir())] == before
        assert [each.state for each in again.add(photos)] == ["known"] * 4
        assert [each.state for each in again.add(released / "out")] == ["known"] * 2, "released files are known as such"
    assert tables(tmp_path / "again") == tables(released / "c")


def test_parquet_is_readable_with_pyarrow(released: Path, extractor, tmp_path: Path) -> None:
    with Collection.open(released / "c", extractor=extractor) as collection:
        collection.export(tmp_path / "export")
        catalog, book = collection.storage, collection.codebook
        rows = pq.read_table(tmp_path / "export" / "photos.parquet").to_pylist()
        for row in rows:
            assert catalog.find(row["sha256"]) == row["id"]
            assert catalog.source_and_state(row["id"]) == (row["source"], row["state"])
            (stored,) = catalog.descriptors(np.array([row["id"]])).values()
            assert np.array_equal(np.array(row["descriptor"], np.float16), stored[0])
        codes = {
            int(number): code.tobytes()
            for ids, codes in catalog.codes()
            for number, code in zip(ids, codes, strict=True)
        }
        assert {row["id"]: row["code"] for row in rows} == codes
        assert all(len(row["code"]) == book.code_size for row in rows)
    sent = pq.read_table(tmp_path / "export" / "releases.parquet").to_pylist()
    assert {Path(each["path"]).name for each in sent} == {"flower.jpg", "rocket.jpg"}
    assert all(each["written"] == 1 for each in sent)
    assert all((each["descriptor"] is not None) == (each["state"] == "activated") for each in sent)


@pytest.mark.parametrize("spec", SPECS)
def test_the_faiss_export_gives_the_same_results(spec: str, tmp_path: Path) -> None:
    queries = descriptors(50, seed=2)
    with filled(tmp_path / "c", train(spec)) as collection:
        collection.export(tmp_path / "export", format="faiss")
        distances, ids = collection.index.search(queries, 5)
    alone = faiss.read_index(str(tmp_path / "export" / "index.faiss"))
    squared, alone_ids = alone.search(queries.numpy(), 5)
    assert np.array_equal(alone_ids, ids)
    assert np.allclose(np.sqrt(np.maximum(squared, 0)), distances, atol=1e-6)
    assert set(ids.ravel()) <= set(np.load(tmp_path / "export" / "ids.npy").tolist())


def test_ids_and_names_have_the_same_order(tmp_path: Path) -> None:
    import csv

    with filled(tmp_path / "c", train("IVF4,PQ8x8")) as collection:
        collection.export(tmp_path / "export", format="faiss")
        with (tmp_path / "export" / "photos.csv").open(newline="") as file:
            listed = list(csv.DictReader(file))
        assert [int(row["id"]) for row in listed] == np.load(tmp_path / "export" / "ids.npy").tolist()
        assert all(collection.storage.source_and_state(int(row["id"]))[0] == row["source"] for row in listed)


@pytest.mark.parametrize("spec", SPECS[:5])
def test_the_script_in_the_readme_gives_the_same_codes(spec: str, tmp_path: Path, monkeypatch) -> None:
    book = train(spec)
    with filled(tmp_path / "c", book) as collection:
        collection.export(tmp_path / "export", format="arrays")
    (script,) = re.findall(r"```python\n(.*?)```", (tmp_path / "export" / "README.md").read_text(), re.DOTALL)
    assert len(script.splitlines()) <= 12
    assert "homing" not in script
    assert "faiss" not in script
    monkeypatch.chdir(tmp_path / "export")
    rows = descriptors(300, seed=3)
    names = {"x": rows.numpy()}
    exec(script, names)
    assert np.array_equal(names["codes"], book.encode(rows))


def test_unsupported_exports_are_rejected(tmp_path: Path) -> None:
    with filled(tmp_path / "c", train("PCA16,LSH")) as collection:
        with pytest.raises(CodebookError, match="--format faiss"):
            collection.export(tmp_path / "export", format="arrays")
        with pytest.raises(UnknownNameError, match="did you mean 'parquet'"):
            collection.export(tmp_path / "export", format="parket")
        assert [path.name for path in tmp_path.iterdir()] == ["c"], "an incomplete export was left"
        (tmp_path / "mine").write_text("mine")
        with pytest.raises(HomingError, match="not empty"):
            collection.export(tmp_path / "mine")
        with pytest.raises(HomingError, match="export to a folder here"):
            collection.export("s3://bucket/export")
        with pytest.raises(HomingError, match="is inside the collection"):
            collection.export(tmp_path / "c" / "generation-2")


def test_a_changed_export_is_rejected(tmp_path: Path) -> None:
    with filled(tmp_path / "c", train("IVF4,PQ8x8")) as collection:
        collection.export(tmp_path / "export")
    with filled(tmp_path / "d", train("IVF8,PQ8x8")) as other:
        other.export(tmp_path / "other")
    table = pq.read_table(tmp_path / "export" / "photos.parquet")
    narrow = pa.array([row[:16] for row in table["descriptor"].to_pylist()], pa.list_(pa.float16(), 16))
    field = table.schema.field("descriptor").with_type(narrow.type)
    shutil.copytree(tmp_path / "export", tmp_path / "narrow")
    pq.write_table(table.set_column(6, field, narrow), tmp_path / "narrow" / "photos.parquet")
    shutil.copy(tmp_path / "other" / "codebook", tmp_path / "export" / "codebook")
    photos = tmp_path / "other" / "photos.parquet"
    photos.write_bytes(photos.read_bytes()[:-100])
    reasons = {
        "narrow": "needs: descriptor, .*32",
        "export": "restore the codebook",
        "other": "damaged",
        "c": "not a Parquet export",
    }
    for name, reason in reasons.items():
        with pytest.raises(CollectionError, match=reason) as reported:
            Collection.from_export(tmp_path / "again", tmp_path / name)
        assert len(str(reported.value).splitlines()) == 1
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("name", ["photos.parquet", "releases.parquet"])
def test_both_tables_are_checked_before_anything_is_created(name: str, tmp_path: Path) -> None:
    with filled(tmp_path / "c", train("IVF4,PQ8x8"), count=3) as collection:
        collection.export(tmp_path / "export")
    file, where = tmp_path / "export" / name, location(f"memory://{uuid4().hex}")
    pq.write_table(pq.read_table(file).drop_columns("sha256"), file)
    with pytest.raises(CollectionError, match=rf"{name} has other columns than .* needs: sha256"):
        Collection.from_export(where, tmp_path / "export")
    assert list_names(where) == []


def test_releases_of_unknown_references_are_rejected(released: Path, extractor, tmp_path: Path) -> None:
    with Collection.open(released / "c", extractor=extractor) as collection:
        collection.export(tmp_path / "export")
    file = tmp_path / "export" / "releases.parquet"
    releases = pq.read_table(file)
    pq.write_table(releases.set_column(0, releases.schema.field("photo"), pa.array([7, 8], pa.int64())), file)
    with pytest.raises(CollectionError, match=r"has releases of references that photos\.parquet lacks"):
        Collection.from_export(tmp_path / "again", tmp_path / "export")
    assert not (tmp_path / "again").exists()


def test_an_export_at_an_address_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="s3://bucket/export is not on this machine; copy the export to a folder"):
        Collection.from_export(tmp_path / "again", "s3://bucket/export")


def test_ids_are_not_reused_after_an_import(tmp_path: Path) -> None:
    book = train("PQ8x8")
    with filled(tmp_path / "c", book, count=5) as collection:
        collection.remove([4, 5])
        collection.export(tmp_path / "export")
    row = descriptors(1, seed=9)
    with Collection.from_export(tmp_path / "again", tmp_path / "export") as again:
        assert again.record(NewPhotos(["f" * 64], ["/new.jpg"], book.encode(row), row.numpy())) == [6]
        assert len(again.index) == 4


def test_an_export_without_its_distractors_is_rejected(released: Path, extractor, tmp_path: Path) -> None:
    with Collection.open(released / "c", extractor=extractor) as collection:
        collection.export(tmp_path / "export")
    (tmp_path / "export" / "distractors").unlink()
    with pytest.raises(CollectionError, match=r"lacks its \S+ distractors"):
        Collection.from_export(tmp_path / "again", tmp_path / "export")
    assert not (tmp_path / "again").exists()


def test_round_trip_of_an_empty_collection(tmp_path: Path) -> None:
    with filled(tmp_path / "c", train("PQ8x8"), count=0) as collection:
        for format in ("parquet", "faiss", "arrays"):
            assert collection.export(tmp_path / format, format=format).photos == 0
    with Collection.from_export(tmp_path / "again", tmp_path / "parquet") as again:
        assert again.info().photos == 0


def test_a_reference_without_its_descriptor_stops_the_export(tmp_path: Path) -> None:
    with filled(tmp_path / "c", train("IVF4,PQ8x8")) as collection:
        with collection.storage._transaction() as change:
            change.execute("DELETE FROM descriptors WHERE photo = 7")
        with pytest.raises(CollectionError, match=r"(?s)reference 7, .* homing check COLLECTION --repair"):
            collection.export(tmp_path / "export")
        with pytest.raises(CollectionError, match=r"(?s)reference 7, .* homing check COLLECTION --repair"):
            migrate(tmp_path / "c", train("PQ8x8"))
    assert not (tmp_path / "export").exists()

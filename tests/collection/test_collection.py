import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.collection.tiny import tiny_extractor

from homing.collection import Collection
from homing.collection.storage._sqlite_database import SqliteDatabase
from homing.errors import CollectionError, HomingError
from homing.photo import Photo


def test_an_added_photo_is_found(collection: Collection, photos: Path) -> None:
    outcomes = collection.add(photos)
    assert [outcome.state for outcome in outcomes] == ["added"] * 4
    for path in photos.iterdir():
        nearest = collection.search(path, k=3)[0]
        assert (Path(nearest.photo), nearest.state) == (path, "passive")


def test_matches_are_ranked_and_distractors_named(collection: Collection, photos: Path) -> None:
    collection.add(photos / "flower.jpg")
    matches = collection.search(photos / "flower.jpg", k=5)
    distances = [match.distance for match in matches]
    assert distances == sorted(distances)
    assert [match.state for match in matches[1:]] == ["distractor"] * 4
    assert all(match.photo.startswith("coco/") for match in matches[1:])


def test_the_same_photo_twice_is_one_reference(collection: Collection, photos: Path, tmp_path: Path) -> None:
    duplicate = tmp_path / "duplicate.jpg"
    shutil.copy(photos / "flower.jpg", duplicate)
    states = [outcome.state for outcome in collection.add([photos / "flower.jpg", duplicate])]
    assert states == ["added", "known"]
    assert [outcome.state for outcome in collection.add([duplicate])] == ["known"]
    assert collection.info().photos == 1


def test_duplicates_far_apart_in_one_job_are_one_reference(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("homing.collection.add.BATCH", 1)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        shutil.copy(photos / "flower.jpg", tmp_path / name)
    states = [outcome.state for outcome in collection.add([tmp_path / "a.jpg", tmp_path / "b.jpg", tmp_path / "c.jpg"])]
    assert states == ["added", "known", "known"]


def test_added_photos_are_there_after_opening_again(tmp_path: Path, photos: Path, extractor) -> None:
    with Collection.create(tmp_path / "c.homing", extractor=extractor) as first:
        first.add(photos)
        before = first.search(photos / "camera.png")
    with Collection.open(tmp_path / "c.homing", extractor=extractor) as again:
        assert again.search(photos / "camera.png") == before


@pytest.mark.parametrize("harm", ["missing", "damaged", "stale"])
def test_a_damaged_snapshot_is_rebuilt(tmp_path: Path, photos: Path, extractor, harm: str) -> None:
    path = tmp_path / "c.homing"
    snapshot = path / "index.faiss"
    with Collection.create(path, extractor=extractor) as first:
        first.add(photos / "camera.png")
        first.search(photos / "camera.png")
    stale = snapshot.read_bytes()
    with Collection.open(path, extractor=extractor) as second:
        second.add(photos / "flower.jpg")
        second.search(photos / "flower.jpg")
    if harm == "missing":
        snapshot.unlink()
    else:
        snapshot.write_bytes(stale if harm == "stale" else snapshot.read_bytes()[:-9] + b"scribbles")
    with Collection.open(path, extractor=extractor) as third:
        assert {Path(match.photo).name for match in third.search(photos / "flower.jpg")} == {"camera.png", "flower.jpg"}
    with Collection.open(path, extractor=extractor) as fourth:
        assert len(fourth.index) == 2
        assert fourth.storage.synced_index.saved, "no new snapshot was saved"


def test_nothing_is_lost_without_close(tmp_path: Path, photos: Path, extractor) -> None:
    abandoned = Collection.create(tmp_path / "c.homing", extractor=extractor)
    abandoned.add(photos)
    with Collection.open(tmp_path / "c.homing", extractor=extractor) as other:
        assert other.info().photos == 4
        assert Path(other.search(photos / "camera.png")[0].photo).name == "camera.png"
    abandoned.close()


def test_two_open_collections_see_each_others_photos(tmp_path: Path, photos: Path, extractor) -> None:
    path = tmp_path / "c.homing"
    with Collection.create(path, extractor=extractor) as first, Collection.open(path, extractor=extractor) as second:
        first.add(photos / "camera.png")
        second.add(photos / "flower.jpg")
        first.add(photos / "chelsea.png")
        for each in (first, second):
            assert len(each.index) == 3
            assert len({match.photo for match in each.search(photos / "flower.jpg")}) == 3
    with Collection.open(path, extractor=extractor) as third:
        assert len(third.index) == 3


def test_unreadable_photos_are_named_and_the_others_added(collection: Collection, photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(photos, folder)
    (folder / "zero.jpg").touch()
    (folder / "text.jpg").write_text("not a photo")
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "tiny.png")
    (folder / "flower-cut.jpg").write_bytes((photos / "flower.jpg").read_bytes()[:5000])
    outcomes = collection.add(folder)
    failed = {Path(outcome.photo).name: outcome.reason for outcome in outcomes if outcome.state == "failed"}
    assert set(failed) == {"zero.jpg", "text.jpg", "tiny.png", "flower-cut.jpg"}
    assert all(reason and str(folder / name) not in reason for name, reason in failed.items())
    assert collection.info().photos == 4


def test_an_interrupted_job_is_resumed(collection: Collection, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.collection.add.BATCH", 1)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collection.add(photos, on_outcome=stop)
    assert collection.info().photos == 1
    assert sorted(outcome.state for outcome in collection.add(photos)) == ["added"] * 3 + ["known"]


def test_the_catalog_holds_descriptors_and_codes(collection: Collection, photos: Path) -> None:
    collection.add(photos / "flower.jpg")
    rows = collection.storage._fetch_all("SELECT code, vector FROM photos JOIN descriptors ON photo = id")
    ((code, vector),) = rows
    descriptor = collection.extractor(collection.extractor.resize(Photo.load(photos / "flower.jpg").pixels())[None])
    np.testing.assert_allclose(np.frombuffer(vector, np.float16), descriptor[0].numpy(), atol=1e-3)
    assert code == collection.codebook.encode(descriptor)[0].tobytes()


def test_create_rejects_an_existing_collection(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c.homing").close()
    with pytest.raises(CollectionError, match="already is a collection, with codebook 'homing-1'"):
        Collection.create(tmp_path / "c.homing")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(CollectionError, match="exists and is not empty"):
        Collection.create(tmp_path / "full")


def test_a_path_is_opened_or_created_by_name() -> None:
    with pytest.raises(HomingError, match=r"open a collection with Collection\.open\('c\.homing'\)"):
        Collection("c.homing")


def test_a_wrong_extractor_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(HomingError):
        Collection.create(tmp_path / "c.homing", extractor=tiny_extractor())
    Collection.create(tmp_path / "c.homing").close()


def test_open_rejects_a_folder_that_is_not_a_collection(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"make one with Collection\.create, or: homing init"):
        Collection.open(tmp_path)


def test_open_rejects_another_codebook(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c.homing").close()
    settings = tmp_path / "c.homing" / "collection.toml"
    settings.write_text(settings.read_text().replace('fingerprint = "', 'fingerprint = "0'))
    with pytest.raises(CollectionError, match="was made with codebook 'homing-1'"):
        Collection.open(tmp_path / "c.homing")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [("collection.toml", b"format = 3\ncodebook='a'\nfingerprint='b'\nextractor='c'", "format 3"),
     ("collection.toml", b"\xff\xfe", "damaged"),
     ("codebook", b"rubbish", "not a homing codebook"),
     ("distractors", b"rubbish", "does not hold distractors"),
     ("catalog.sqlite", b"rubbish" * 1000, "catalog")],
)  # fmt: skip
def test_damage_is_named(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    Collection.create(tmp_path / "c.homing", with_distractors=True).close()
    (tmp_path / "c.homing" / file).write_bytes(content)
    with pytest.raises(HomingError, match=message):
        Collection.open(tmp_path / "c.homing").info()


def test_a_failed_transaction_is_rolled_back(tmp_path: Path) -> None:
    catalog = SqliteDatabase(tmp_path / "catalog.sqlite")
    catalog.create_tables()
    with pytest.raises(RuntimeError), catalog._transaction() as change:
        change.execute("INSERT INTO metadata VALUES ('half', 'done')")
        raise RuntimeError
    assert catalog.get_metadata("half") is None
    catalog.close()

"""Photos in memory are added, activated and searched for like files, and never added in part."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, SPEC, tiny_codebook, tiny_extractor, tiny_photos

from homing._io.paths import total_size
from homing.collection import Collection, migrate, switch
from homing.collection.storage._sqlite_database import file_lock
from homing.errors import BusyError, HomingError, PhotoError
from homing.photo import Photo


def image(seed: int) -> Image.Image:
    """A smooth image of 64 × 48 pixels."""
    small = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((64, 48), Image.Resampling.BICUBIC)


def tensor(seed: int) -> torch.Tensor:
    return torch.from_numpy(np.array(image(seed))).permute(2, 0, 1) / 255


def encoded(seed: int, format: str = "PNG") -> bytes:
    file = BytesIO()
    image(seed).save(file, format)
    return file.getvalue()


def uploads(collection: Collection) -> list[str]:
    """The names of the stored files."""
    folder = Path(str(collection.root)) / "uploads"
    return sorted(each.name for each in folder.rglob("*") if each.is_file()) if folder.exists() else []


@pytest.fixture(params=["c", "c.lance"])
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Collection]:
    """An empty collection in SQLite or Lance."""
    codebook = tiny_codebook(LANCE if request.param.endswith(".lance") else SPEC)
    with Collection.create(tmp_path / request.param, codebook=codebook, extractor=tiny_extractor()) as created:
        yield created


def test_photos_of_every_kind_are_added_and_found(opened: Collection, tmp_path: Path) -> None:
    path = tiny_photos(tmp_path / "photos", 1, seed=9)[0]
    kinds: list[Any] = [
        path,
        np.array(image(1)),
        image(2),
        encoded(3),
        BytesIO(encoded(4, "JPEG")),
        tensor(5),
        Photo.decode(encoded(6), "sea.png"),
    ]
    assert [each.state for each in opened.add(kinds)] == ["added"] * 7
    assert len(uploads(opened)) == 6
    queries = [path, image(1), encoded(2), tensor(3), BytesIO(encoded(4, "JPEG")), np.array(image(5)), image(6)]
    results = opened.search(queries, k=1)
    ids = [result[0].id for result in results]
    assert len(set(ids)) == 7
    assert all(result[0].distance < 0.02 for result in results)
    assert results[0].query == str(path)
    assert Path(results[-1][0].photo).name == "sea.png"
    assert all(Path(result[0].photo).is_file() for result in results)
    assert opened.check() == []


def test_a_photo_that_refuses_a_list_is_named(opened: Collection) -> None:
    with pytest.raises(PhotoError, match=r"^photo 2: got an array of shape \(5,\)"):
        opened.add([image(1), np.zeros(5)])
    with pytest.raises(PhotoError, match=r"^'b\.png': got a PIL image of mode CMYK"):
        opened.add({"a.png": image(1), "b.png": image(2).convert("CMYK")})
    with pytest.raises(PhotoError, match=r"^photo 3: got a tensor of shape .* with values from 0 to 2"):
        opened.search(torch.stack([tensor(1), tensor(2), torch.linspace(0, 2, 9216).reshape(3, 48, 64)]))
    assert uploads(opened) == []


def test_a_dict_gives_the_names(opened: Collection, tmp_path: Path) -> None:
    outcomes = opened.activate(
        {"beach.png": image(1), "sea.jpg": encoded(2, "JPEG")}, tmp_path / "out", recipe=RECIPES[1]
    )
    assert [Path(each.photo).name for each in outcomes] == ["beach.png", "sea.jpg"]
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["beach.png", "sea.jpg"]
    assert uploads(opened) == ["beach.png", "sea.jpg"]
    for outcome, seed in zip(outcomes, (1, 2), strict=True):
        assert outcome.state in ("activated", "unchanged")
        assert opened.search(outcome.released)[0].photo == outcome.photo
        assert opened.search(image(seed), k=1).query.endswith(".png")


def test_the_released_file_equals_that_of_the_same_file_on_disk(opened: Collection, tmp_path: Path) -> None:
    (tmp_path / "beach.png").write_bytes(encoded(1))
    with Collection.create(tmp_path / "other", codebook=opened.codebook, extractor=tiny_extractor()) as other:
        other.activate(tmp_path / "beach.png", tmp_path / "from_path", recipe=RECIPES[1])
    opened.activate({"beach.png": encoded(1)}, tmp_path / "from_memory", recipe=RECIPES[1])
    released = [(tmp_path / folder / "beach.png").read_bytes() for folder in ("from_path", "from_memory")]
    assert released[0] == released[1]


def test_a_known_photo_is_not_stored_again(opened: Collection, tmp_path: Path) -> None:
    (tmp_path / "beach.png").write_bytes(encoded(1))
    opened.add(tmp_path / "beach.png")
    assert [each.state for each in opened.add({"copy.png": encoded(1)})] == ["known"]
    assert uploads(opened) == []
    assert [each.state for each in opened.add([image(2), image(2)])] == ["added"]
    assert [each.state for each in opened.add(image(2))] == ["known"]
    assert len(uploads(opened)) == 1


def test_nothing_is_added_if_one_photo_is_invalid(opened: Collection, tmp_path: Path) -> None:
    for wrong in (None, b"text", np.zeros((3, 4)), tensor(1) * 9, [image(2)]):
        for job in (opened.add, lambda photos: opened.activate(photos, tmp_path / "out", recipe=RECIPES[0])):
            with pytest.raises(PhotoError):
                job([image(1), tensor(2), wrong])
        with pytest.raises(PhotoError):
            opened.search([image(1), wrong])
    with pytest.raises(HomingError, match="no such file or folder"):
        opened.add([image(1), tmp_path / "nothing.jpg"])
    with pytest.raises(PhotoError, match="no photos were given"):
        opened.add([])
    assert opened.info().photos == 0
    assert uploads(opened) == [] and not (tmp_path / "out").exists()


def test_only_a_damaged_file_fails_and_it_is_not_stored(opened: Collection) -> None:
    damaged = encoded(1)[:2000] + bytes(500)
    outcomes = opened.add({"good.png": image(2), "bad.png": damaged})
    assert {Path(each.photo).name: each.state for each in outcomes} == {"good.png": "added", "bad.png": "failed"}
    assert uploads(opened) == ["good.png"]


def test_removing_a_reference_deletes_its_stored_file(opened: Collection, tmp_path: Path) -> None:
    path = tiny_photos(tmp_path / "photos", 1)[0]
    opened.add([path, image(1), image(2)])
    number = opened.search(image(1), k=1)[0].id
    assert [each.state for each in opened.remove([number, path])] == ["removed", "removed"]
    assert path.is_file()
    assert len(uploads(opened)) == 1
    assert opened.check() == []


def test_a_migration_finds_stored_files(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", codebook=tiny_codebook(), extractor=tiny_extractor()) as created:
        created.add([image(1), tensor(2)])
        sources = {match.photo for match in created.search(image(1))}
    done = migrate(tmp_path / "c", tiny_codebook("IVF4,PQ12x4"), extractor=tiny_extractor())
    assert (done.photos, done.missing) == (2, [])
    switch(tmp_path / "c")
    with Collection.open(tmp_path / "c", extractor=tiny_extractor()) as now:
        assert {match.photo for match in now.search(image(1), probes=4)} == sources


def test_uploads_are_private_and_locked_during_changes(small: Collection) -> None:
    small.add(image(1))
    folder = Path(str(small.root)) / "uploads"
    assert folder.stat().st_mode & 0o777 == 0o700
    before = total_size(folder)
    with file_lock(small.root, "uploads.lock"), pytest.raises(BusyError):
        small.add(image(2))
    with small.lock_for_writing(), pytest.raises(BusyError):
        small.add(image(2))
    assert total_size(folder) == before
    assert [each.state for each in small.add(image(2))] == ["added"]


def test_uploads_of_a_collection_in_a_bucket(s3: str) -> None:
    where = f"{s3}/photos.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        assert [each.state for each in created.add({"beach.png": image(1)})] == ["added"]
        match = created.search(image(1), k=1)[0]
        assert match.photo.startswith(f"{where}/uploads/") and match.photo.endswith("/beach.png")
        assert Photo.load(match.photo).data == Photo.load(str(match.photo)).data
        assert [each.state for each in created.add(Photo.load(match.photo))] == ["known"]
        assert created.check() == []
        created.remove(match.id)
        with pytest.raises(PhotoError):
            Photo.load(match.photo)


def test_a_batch_of_tensors_gives_a_list_of_results(small: Collection) -> None:
    batch = torch.stack([tensor(seed) for seed in range(20)])
    small.add(batch)
    results = small.search(batch, k=1, variants=True)
    assert len(results) == 20 and len({result[0].id for result in results}) == 20
    assert all(result[0].distance < 0.02 and result.settings.variants for result in results)
    alone = [small.search(each, k=1, variants=True)[0] for each in batch]
    assert [match.id for match in alone] == [result[0].id for result in results]


def test_an_unreadable_query_is_named(small: Collection, tmp_path: Path) -> None:
    with pytest.raises(PhotoError, match=r"nothing\.jpg: cannot be read"):
        small.search([image(1), tmp_path / "nothing.jpg"])
    with pytest.raises(PhotoError, match="a folder; the file of a photo is expected"):
        small.search(tmp_path)


@pytest.mark.parametrize("make", [image, tensor, encoded, lambda seed: np.array(image(seed))])
def test_uploads_are_found_after_moving_the_collection(make: Callable[[int], Any], tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", codebook=tiny_codebook(), extractor=tiny_extractor()) as created:
        created.add(make(1))
    shutil.move(tmp_path / "c", tmp_path / "moved")
    with Collection.open(tmp_path / "moved", extractor=tiny_extractor()) as moved:
        assert moved.search(make(1), k=1).verdict == "match" or moved.search(make(1), k=1)[0].distance < 0.02
        assert [each.state for each in moved.add(make(1))] in (["known"], ["moved"])
        assert len(uploads(moved)) == 1

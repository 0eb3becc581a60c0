"""A collection in Lance does what one in a folder does, wherever it lies."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing._places import place, write_whole
from homing.codebooks.arrays import as_arrays
from homing.collection import Collection, check
from homing.collection.catalogue import Catalogue
from homing.collection.generations import delete
from homing.collection.lance.catalogue import LanceCatalogue, schemas
from homing.collection.lance.collection import LanceCollection
from homing.collection.lance.table import Table
from homing.errors import CollectionError, GoneError, HomingError
from homing.indexes.lance import drop_index


def test_the_same_answers_as_in_a_folder(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 12)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as folder:
        for collection in (lake, folder):
            assert [each.state for each in collection.add(tmp_path / "photos")] == ["added"] * 12
            assert [each.state for each in collection.add(tmp_path / "photos")] == ["known"] * 12
            out = tmp_path / f"out-{type(collection).__name__}"
            done = collection.activate(photos[:4], out, recipe=RECIPES[0])
            assert {each.state for each in done} <= {"activated", "unchanged"}
            assert [each.state for each in collection.activate(photos[:4], out, recipe=RECIPES[0])] == [
                each.state for each in done
            ]
        for options in ({}, {"probes": 1}, {"probes": 3, "rerank": 100}, {"margin": 0.2}, {"turned": True}):
            for photo in photos[:6]:
                there, here = lake.search(photo, k=5, **options), folder.search(photo, k=5, **options)
                assert [(each.photo, each.state, each.by) for each in there] == [
                    (each.photo, each.state, each.by) for each in here
                ]
                np.testing.assert_allclose(
                    [(each.distance, each.chance) for each in there],
                    [(each.distance, each.chance) for each in here],
                    atol=2e-3,  # descriptors in a folder are rounded
                )
        one, two = lake.info(), folder.info()
        assert (one.photos, one.activated, one.unchanged) == (two.photos, two.activated, two.unchanged)
    assert lake.check() == []


def test_activating_does_not_change_the_index(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    lake.add(photos)
    before = lake.folder.catalogue.revision
    assert "activated" in {each.state for each in lake.activate(photos, tmp_path / "out", recipe=RECIPES[1])}
    assert lake.folder.catalogue.revision == before


def test_references_leave_by_id_path_and_folder(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4) + tiny_photos(tmp_path / "photos" / "deep", 3, seed=1)
    lake.add(tmp_path / "photos")
    (first,) = lake.find(photos[0]).ids
    lake.activate(photos[0], tmp_path / "out", recipe=RECIPES[1])
    (outcome,) = lake.remove(first)
    assert (outcome.state, outcome.released) == ("removed", tmp_path / "out" / photos[0].name)
    assert [each.state for each in lake.remove(photos[1])] == ["removed"]
    assert len(lake.remove(tmp_path / "photos" / "deep")) == 3
    assert [each.state for each in lake.remove([first, "nowhere.jpg"])] == ["failed", "failed"]
    assert lake.info().photos == 2
    assert all(match.photo in map(str, photos[2:4]) for match in lake.search(photos[0], k=10))
    with pytest.raises(GoneError):
        lake.folder.catalogue.describe(first)
    assert lake.add(photos[0])[0].state == "added", "it may come back"
    assert lake.find(photos[0]).ids != [first], "under another id"


def test_files_that_moved_or_changed_are_followed(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    lake.add(photos)
    photos[0].rename(tmp_path / "photos" / "it's there.png")
    (moved,) = lake.add(tmp_path / "photos" / "it's there.png")
    assert (moved.state, moved.moved_from) == ("moved", photos[0])
    shutil.copy(tiny_photos(tmp_path / "others", 2, seed=7)[1], photos[1])
    assert [each.state for each in lake.add(photos[1], replace=True)] == ["replaced"]
    assert lake.info().photos == 3
    assert lake.search(photos[1], k=1)[0].photo == str(photos[1])
    assert lake.search(tmp_path / "photos" / "it's there.png", k=1)[0].photo.endswith("it's there.png")


def test_passive_photos_are_activated_later(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 3)
    lake.add(photos)
    lake.activate(photos[0], tmp_path / "out", recipe=RECIPES[0])
    done = lake.activate_passive(tmp_path / "out", recipe=RECIPES[0])
    assert sorted(str(each.photo) for each in done) == sorted(map(str, photos[1:]))
    assert lake.info().passive == 0 and lake.activate_passive(tmp_path / "out", recipe=RECIPES[0]) == []


def test_versions_can_be_searched_as_they_were(lake: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 4)
    lake.add(photos[:2])
    before = lake.info().version
    lake.add(photos[2:])
    lake.remove(photos[0])
    assert isinstance(lake, LanceCollection)
    assert {each.number: each.photos for each in lake.versions()}[before] == 2
    with opening(lake.folder.home, version=before) as then:
        assert {match.photo for match in then.search(photos[3], k=10)} == {str(photos[0]), str(photos[1])}
        with pytest.raises(CollectionError, match="is as it was; open the latest"):
            then.remove(photos[1])
    with pytest.raises(CollectionError, match=r"version 99 of .* is not there, or was forgotten"):
        opening(lake.folder.home, version=99)
    assert lake.info().photos == 3


def test_compacting_changes_no_answer(lake: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 20)
    for photo in photos:
        lake.add(photo)
    lake.activate(photos[:3], tmp_path / "out", recipe=RECIPES[0])
    lake.remove(photos[5:8])
    with opening(lake.folder.home) as reader:
        before = [reader.search(photo, k=20, probes=8) for photo in photos]
        assert isinstance(lake, LanceCollection)
        lake.compact()
        assert lake.index.tail == 0 and len(lake.folder.catalogue.references.dataset.get_fragments()) == 1
        after = [reader.search(photo, k=20, probes=8) for photo in photos]
    for one, other in zip(before, after, strict=True):
        assert {(each.id, each.state, each.photo) for each in one} == {
            (each.id, each.state, each.photo) for each in other
        }
        np.testing.assert_allclose([each.distance for each in one], [each.distance for each in other], atol=2e-6)
    lake.add(tiny_photos(tmp_path / "more", 2, seed=3))
    lake.compact()
    assert lake.index.tail == 0 and lake.check() == []


def test_readers_see_what_others_add(lake: Collection, opening, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 2)
    with opening(lake.folder.home) as reader:
        assert reader.search(photos[0]) == []
        lake.add(photos[0])
        assert reader.search(photos[0], k=1)[0].distance < 0.01
        lake.remove(photos[0])
        assert reader.search(photos[0]) == []


def test_what_is_wrong_is_found_and_mended(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 8)
    done = lake.activate(photos, tmp_path / "out", recipe=RECIPES[1])
    catalogue = lake.folder.catalogue
    assert isinstance(lake, LanceCollection)
    lake.compact()
    assert check(lake.folder.home) == []
    released = [each for each in done if each.state == "activated"]
    Path(str(released[0].released)).write_bytes(b"another")
    _give_other_cells(lake)
    catalogue.releases.delete(f"written AND path = '{released[1].released}'")
    assert [each.problem for each in lake.check() if each.part == "index"] == [
        "the index has other cells than the codebook: somebody trained it anew"
    ]
    assert sorted(finding.problem.split(" ", 1)[1] for finding in lake.check() if finding.part == "release") == [
        "is not what was released there",
        "was written, but a crash came before that was noted",
    ]
    mended = {
        finding.part: finding.mended for finding in lake.check(repair=True) if "is not what" not in finding.problem
    }
    assert mended == {"index": True, "release": True}
    (left,) = lake.check()
    assert left.problem.endswith("is not what was released there")


def test_settings_and_a_codebook_of_ours_are_put_back(tmp_path: Path) -> None:
    where = tmp_path / "c.lance"
    Collection.create(where).close()
    before = {name: (where / name).read_bytes() for name in ("collection.toml", "codebook")}
    for name, data in before.items():
        (where / name).write_bytes(b"damaged")
        assert [each.mended for each in check(where)] == [False]
        assert [each.mended for each in check(where, repair=True)] == [True]
        assert (where / name).read_bytes() == data and check(where) == []


def test_nothing_is_made_over_references_that_are_there(address: str, tmp_path: Path) -> None:
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as made:
        made.add(tiny_photos(tmp_path / "photos", 2))
    settings = (place(address) / "collection.toml").read_bytes()
    for book in (tiny_codebook(LANCE), tiny_codebook("IVF8,PQ6x8")):
        delete(place(address) / "collection.toml")
        with pytest.raises(CollectionError, match=r"whose collection\.toml is gone"):
            Collection.create(address, codebook=book)
        write_whole(place(address) / "collection.toml", settings, new=True)
    with Collection.open(address, extractor=tiny_extractor()) as opened:
        assert opened.info().photos == 2 and opened.check() == []


@pytest.mark.parametrize("wrong", ["s3://bucket/a%20b.lance", "s3://bucket/a#1.lance", "s3://", "memory://c.lance"])
def test_addresses_that_lance_reads_otherwise_are_refused(wrong: str) -> None:
    with pytest.raises(CollectionError, match="is no address for a collection"):
        Collection.create(wrong, codebook=tiny_codebook(LANCE))


def test_lookups_that_are_damaged_are_built_anew(opening, tmp_path: Path) -> None:
    photos, where = tiny_photos(tmp_path / "photos", 3), tmp_path / "c.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as made:
        made.activate(photos, tmp_path / "out", recipe=RECIPES[0])
        assert isinstance(made, LanceCollection)
        made.compact()
    for name in ("references.lance", "releases.lance"):
        shutil.rmtree(where / name / "_indices")
    with opening(where) as opened:
        with pytest.raises(CollectionError, match=r"cannot be (searched|read)"):
            opened.search(photos[0])
        assert len(opened.check(repair=True)) == 5
    with opening(where) as opened:
        assert opened.check() == [] and opened.search(photos[0], k=1)[0].photo == str(photos[0])
        assert {each.state for each in opened.add(photos)} == {"known"}


def test_a_damaged_index_is_built_anew(opening, tmp_path: Path) -> None:
    photos, where = tiny_photos(tmp_path / "photos", 8), tmp_path / "c.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as made:
        made.add(photos)
        assert isinstance(made, LanceCollection)
        made.compact()
        before = made.search(photos[0], probes=8)
    for file in (where / "references.lance" / "_indices").glob("*/index.idx"):
        file.unlink()
    with opening(where) as opened:
        (finding,) = opened.check(repair=True)
        assert finding.part == "index" and finding.mended and "the index is damaged" in finding.problem
        assert opened.check() == []
        assert [each.id for each in opened.search(photos[0], probes=8)] == [each.id for each in before]


def _give_other_cells(lake: Collection) -> None:
    """As a run of Lance's own optimisation does that trains anew."""
    dataset, arrays = lake.folder.catalogue.references.latest(), as_arrays(lake.codebook)[0]
    words = arrays["codewords"]
    drop_index(dataset)
    dataset.create_index(
        "vector",
        "IVF_PQ",
        name="cells",
        num_partitions=8,
        num_sub_vectors=len(words),
        ivf_centroids=arrays["centroids"][::-1].copy(),
        pq_codebook=words,
    )


def test_a_code_that_is_not_that_of_its_descriptor_is_found(lake: Collection, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "photos", 1)
    lake.add(photo)
    catalogue = lake.folder.catalogue
    rows = catalogue.references.rows(["sha256", "source", "added", "code", "vector"])
    code = np.array(rows["code"].to_pylist()[0], np.uint8) ^ 0x5A
    wrong = rows.to_pylist()[0] | {"code": code, "sha256": "f" * 64}
    catalogue.references.append(type(rows).from_pylist([wrong], schema=rows.schema))
    (finding,) = lake.check()
    assert finding.part == "reference" and "not that of its descriptor" in finding.problem


def test_references_that_a_killed_compaction_left_in_the_index_are_not_told(lake: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 8)
    lake.add(photos)
    assert isinstance(lake, LanceCollection)
    lake.compact()
    lake.remove(photos[:3])
    lake.folder.catalogue.references.latest().optimize.compact_files()  # and then a kill
    assert {match.photo for match in lake.search(photos[0], k=20, probes=8)} == set(map(str, photos[3:]))


def test_what_a_killed_removal_leaves_is_a_passive_reference(lake: Collection, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "photos", 1)
    lake.activate(photo, tmp_path / "out", recipe=RECIPES[1])
    catalogue, deleted = lake.folder.catalogue, []
    delete = catalogue.references.delete
    catalogue.references.delete = deleted.append  # the kill
    lake.remove(photo)
    assert deleted and lake.info().passive == lake.info().photos == 1
    catalogue.references.delete = delete
    assert [each.state for each in lake.remove(photo)] == ["removed"] and lake.info().photos == 0


def test_parts_that_a_killed_init_left_are_made_anew(address: str, tmp_path: Path) -> None:
    other = tiny_codebook("IVF8,PQ6x8")
    for name, schema in schemas(other).items():
        Table.create(place(address) / name, schema)
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as made:
        assert [each.state for each in made.add(tiny_photos(tmp_path / "photos", 2))] == ["added"] * 2


def test_an_empty_folder_of_this_name_becomes_one(tmp_path: Path) -> None:
    (tmp_path / "photos.lance").mkdir()
    with Collection.create(tmp_path / "photos.lance", codebook=tiny_codebook(LANCE)) as made:
        assert isinstance(made, LanceCollection)


def test_ids_that_can_be_none_name_none(lake: Collection, tmp_path: Path) -> None:
    lake.add(tiny_photos(tmp_path / "photos", 1))
    assert [each.state for each in lake.remove([0, -3, 10**30, 1])] == ["removed", "failed", "failed", "failed"]


def test_it_opens_only_what_is_there(address: str, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match="is not a collection; make one with: homing init"):
        Collection.open(address)
    Collection.create(address, codebook=tiny_codebook(LANCE)).close()
    with pytest.raises(CollectionError, match="is a collection already"):
        Collection.create(address, codebook=tiny_codebook(LANCE))
    with pytest.raises(HomingError, match="has no background"):
        Collection.create(f"{address}/other.lance", with_background=True)
    Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(LANCE)).close()
    with pytest.raises(HomingError, match="keeps no versions"):
        Collection.open(tmp_path / "c.homing", version=2)


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['lance'] = None\n"
        "from homing.__main__ import main; sys.argv = ['homing', 'init', 'p.lance']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "homing: lance is missing; get it: pip install 'homing[lance]'"


def test_it_answers_all_that_a_catalogue_is_asked() -> None:
    of_snapshots = {"codes", "fact", "set_facts", "recoded", "recode", "removed_since", "create", "upgrade"}
    asked = {name for name in dir(Catalogue) if not name.startswith("_")}
    assert asked - of_snapshots <= set(dir(LanceCatalogue))


def test_found_by_name_after_it_was_renamed(tmp_path: Path) -> None:
    Collection.create(tmp_path / "a.lance", codebook=tiny_codebook(LANCE)).close()
    (tmp_path / "a.lance").rename(tmp_path / "archive")
    with Collection.open(tmp_path / "archive", extractor=tiny_extractor()) as opened:
        (photo,) = tiny_photos(tmp_path / "photos", 1)
        opened.add(photo)
        number = opened.folder.catalogue.find(hashlib.sha256(photo.read_bytes()).hexdigest())
        assert number is not None and opened.folder.catalogue.existing([number, 77]) == [number]
        (vectors,) = opened.folder.catalogue.descriptors(np.array([number])).values()
        assert torch.linalg.norm(torch.from_numpy(vectors[0])).item() == pytest.approx(1, abs=1e-5)

"""Checks and repairs of collections in Lance, damaged or after a kill."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.codebooks.codebook import as_arrays
from homing.collection import Collection, check
from homing.errors import CodebookError, CollectionError
from homing.indexes.lance import drop_index


def test_damage_is_found_and_repaired(lance_collection: Collection, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 8)
    done = lance_collection.activate(photos, tmp_path / "out", recipe=RECIPES[1])
    catalog = lance_collection.storage
    lance_collection.compact()
    assert check(lance_collection.root) == []
    released = [each for each in done if each.state == "activated"]
    Path(str(released[0].released)).write_bytes(b"another")
    _give_other_cells(lance_collection)
    catalog.log.delete(f"written AND path = '{released[1].released}'")
    assert [each.problem for each in lance_collection.check() if each.part == "index"] == [
        "the index has other cells than the codebook: it was trained again"
    ]
    # A file that was just written may soon be recorded: only a repair, which nobody works beside, reports it.
    assert [finding.problem.split(" ", 1)[1] for finding in lance_collection.check() if finding.part == "release"] == [
        f"is not the file that was released for {released[0].photo}"
    ]
    repaired = {
        finding.part: finding.repaired
        for finding in lance_collection.check(repair=True)
        if "is not the file" not in finding.problem
    }
    assert repaired == {"index": True, "release": True}
    (finding,) = lance_collection.check()
    assert finding.problem.endswith(f"is not the file that was released for {released[0].photo}")


def test_settings_and_bundled_codebook_are_restored(tmp_path: Path) -> None:
    where = tmp_path / "c.lance"
    Collection.create(where).close()
    before = {name: (where / name).read_bytes() for name in ("collection.toml", "codebook")}
    for name, data in before.items():
        (where / name).write_bytes(b"damaged")
        assert [each.repaired for each in check(where)] == [False]
        assert [each.repaired for each in check(where, repair=True)] == [True]
        assert (where / name).read_bytes() == data and check(where) == []


def test_damaged_lookup_indexes_are_rebuilt(opening, tmp_path: Path) -> None:
    photos, where = tiny_photos(tmp_path / "photos", 3), tmp_path / "c.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        created.activate(photos, tmp_path / "out", recipe=RECIPES[0])
        created.compact()
    for name in ("references.lance", "releases.lance"):
        shutil.rmtree(where / name / "_indices")
    with opening(where) as opened:
        with pytest.raises(CollectionError, match=r"cannot be (searched|read)"):
            opened.search(photos[0])
        assert len(opened.check(repair=True)) == 5
    with opening(where) as opened:
        assert opened.check() == [] and opened.search(photos[0], k=1)[0].photo == str(photos[0])
        assert {each.state for each in opened.add(photos)} == {"known"}


def test_a_damaged_index_is_rebuilt(opening, tmp_path: Path) -> None:
    photos, where = tiny_photos(tmp_path / "photos", 8), tmp_path / "c.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        created.add(photos)
        created.compact()
        before = created.search(photos[0], probes=8)
    for file in (where / "references.lance" / "_indices").glob("*/index.idx"):
        file.unlink()
    with opening(where) as opened:
        (finding,) = opened.check(repair=True)
        assert finding.part == "index" and finding.repaired and "the index is damaged" in finding.problem
        assert opened.check() == []
        assert [each.id for each in opened.search(photos[0], probes=8)] == [each.id for each in before]


def _give_other_cells(lance_collection: Collection) -> None:
    """Replace the cells, as Lance's own optimization does if it trains again."""
    dataset, arrays = lance_collection.storage.table.latest(), as_arrays(lance_collection.codebook)[0]
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


def test_removed_references_are_not_found_after_a_killed_compaction(
    local_collection: Collection, tmp_path: Path
) -> None:
    photos = tiny_photos(tmp_path / "photos", 8)
    local_collection.add(photos)
    local_collection.compact()
    local_collection.remove(photos[:3])
    local_collection.storage.table.latest().optimize.compact_files()  # as in a killed compaction
    assert {match.photo for match in local_collection.search(photos[0], k=20, probes=8)} == set(map(str, photos[3:]))


def test_a_killed_removal_leaves_a_passive_reference(local_collection: Collection, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "photos", 1)
    local_collection.activate(photo, tmp_path / "out", recipe=RECIPES[1])
    catalog, deleted = local_collection.storage, []
    delete_path = catalog.table.delete
    catalog.table.delete = deleted.append  # as in a killed removal
    local_collection.remove(photo)
    assert deleted and local_collection.info().passive == local_collection.info().photos == 1
    catalog.table.delete = delete_path
    assert [each.state for each in local_collection.remove(photo)] == [
        "removed"
    ] and local_collection.info().photos == 0


@pytest.mark.parametrize("name", ["references.lance", "releases.lance"])
def test_a_damaged_dataset_is_a_finding(name: str, tmp_path: Path) -> None:
    where = tmp_path / "c.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as created:
        created.activate(tiny_photos(tmp_path / "photos", 3), tmp_path / "out", recipe=RECIPES[0])
    newest = max((where / name / "_versions").glob("*.manifest"), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:10])
    (found,) = check(where)
    assert found.part == "catalog" and "restore it from a backup" in str(found.action)
    shutil.rmtree(where / name)
    (found,) = check(where, repair=True)
    assert found.part == "catalog" and not found.repaired


def test_temporary_files_in_an_output_folder_are_removed(local_collection: Collection, tmp_path: Path) -> None:
    out = tmp_path / "out"
    local_collection.activate(tiny_photos(tmp_path / "photos", 2), out, recipe=RECIPES[0])
    temporary = out / ".0123456789abcdef.tmp"
    temporary.write_bytes(b"half a photo")
    assert local_collection.check() == []  # another process may be writing it
    os.utime(temporary, (0, 0))
    assert [(each.problem, each.repaired) for each in local_collection.check(repair=True)] == [
        (f"{temporary} is a temporary file that a crash left", True)
    ]
    assert not temporary.exists() and local_collection.check() == []


def test_a_missing_folder_is_not_a_collection(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"make one with Collection\.create, or: homing init"):
        check(tmp_path / "nothing.lance")


def test_missing_settings_or_codebook_name_the_repair(tmp_path: Path) -> None:
    where = tmp_path / "c.lance"
    Collection.create(where).close()
    settings = (where / "collection.toml").read_bytes()
    (where / "collection.toml").unlink()
    with pytest.raises(CollectionError, match=r"is missing; restore it with: homing check .* --repair"):
        Collection.open(where)
    (where / "collection.toml").write_bytes(settings)
    (where / "codebook").unlink()
    with pytest.raises(CodebookError, match=r"find the problem with: homing check"):
        Collection.open(where)

"""False-match probabilities, what `max_false_match` omits, and what a search does by default."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos
from tests.conftest import FakeExtractor, descriptors

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.catalog import NewPhotos
from homing.errors import HomingError

DIM, QUERIES = 16, 4000


@pytest.fixture(scope="module")
def book() -> Codebook:
    """A codebook for random descriptors, which are as unrelated as can be."""
    rows = descriptors(3000, seed=1, dim=DIM).numpy()
    return Codebook.train(rows, spec="IVF8,PQ8x6", extractor=FakeExtractor(), name="random")


def filled(path: Path, book: Codebook, count: int) -> Collection:
    """A collection of so many random descriptors."""
    opened = Collection.create(path / f"{count}.homing", codebook=book)
    rows = descriptors(count, seed=2, dim=DIM)
    codes = book.encode(rows)
    hashes, sources = [f"{n}" for n in range(count)], [f"/{n}.jpg" for n in range(count)]
    opened.record(NewPhotos(hashes, sources, codes, rows.numpy()))
    return opened


@pytest.mark.parametrize("rerank", [0, 200])
@pytest.mark.parametrize("count", [20, 200])
def test_unrelated_queries_find_something_as_often_as_stated(
    tmp_path: Path, book: Codebook, count: int, rerank: int
) -> None:
    with filled(tmp_path, book, count) as collection:
        found = collection.search_descriptors(descriptors(QUERIES, seed=3, dim=DIM), k=1, probes=8, rerank=rerank)
    chances = np.array([matches[0].false_match_probability for matches in found])
    for stated in (0.3, 0.1, 0.03):
        assert (chances <= stated).mean() == pytest.approx(stated, rel=0.35)


def test_a_query_that_is_described_often_has_as_many_chances(tmp_path: Path, book: Codebook) -> None:
    with filled(tmp_path, book, 200) as collection:
        turned = descriptors(2500, seed=4, dim=DIM).view(500, 5, DIM)
        found = collection.search_descriptors(turned, k=1, probes=8)
    chances = np.array([matches[0].false_match_probability for matches in found])
    assert (chances <= 0.1).mean() == pytest.approx(0.1, rel=0.5)


def test_the_same_distance_is_likelier_in_a_larger_collection(tmp_path: Path, book: Codebook) -> None:
    query = descriptors(20, seed=2, dim=DIM)[7:8]
    chances = []
    for count in (20, 80):  # too few to tell how much alike they are
        with filled(tmp_path, book, count) as collection:
            (match,) = collection.search_descriptors(query, k=1)[0]
            assert match.photo == "/7.jpg"
            chances.append(match.false_match_probability)
    assert chances[1] == pytest.approx(4 * chances[0], rel=1e-3)


def test_what_may_be_chance_is_left_out(tmp_path: Path, book: Codebook) -> None:
    with filled(tmp_path, book, 200) as collection:
        known, unknown = descriptors(200, seed=2, dim=DIM)[7:8], descriptors(1, seed=6, dim=DIM)
        both = torch.cat([known, unknown])
        everything = collection.search_descriptors(both, k=10)
        left = collection.search_descriptors(both, k=10, max_false_match=1e-3)
        assert [match.photo for match in left[0]] == ["/7.jpg"]
        assert left[1].matches == []
        for some, kept in zip(everything, left, strict=True):
            assert kept.matches == [match for match in some if match.false_match_probability <= 1e-3]
        assert [len(some) for some in everything] == [10, 10]
        for wrong in (0, -1, 1.5, float("nan")):
            with pytest.raises(HomingError, match="max_false_match must be above 0 and at most 1"):
                collection.search_descriptors(both, max_false_match=wrong)


def test_an_activated_photo_is_compared_with_what_was_released_too(
    collection: Collection, photos: Path, tmp_path: Path
) -> None:
    """The released file has left its original: a copy of either is sure, and a distractor has two tries."""
    collection.add(photos)
    passive = {match.id: match for match in collection.search(photos / "flower.jpg", k=5000)}
    activated = collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")[0].released
    assert activated is not None
    number = collection.folder.catalog.find(hashlib.sha256((photos / "flower.jpg").read_bytes()).hexdigest())
    for copy, descriptors_of in ((photos / "flower.jpg", 0), (activated, 1)):
        first = collection.search(copy, k=1)[0]
        assert (first.id, first.state, first.compared) == (number, "activated", "descriptor")
        assert first.distance < 0.02, descriptors_of
        assert first.false_match_probability == pytest.approx(2 * passive[number].false_match_probability, rel=0.5)
    others = collection.search(photos / "flower.jpg", k=5000)
    assert all(each == passive[each.id] for each in others if each.compared == "descriptor" and each.id != number)


def test_an_activated_photo_comes_before_one_that_is_nearly_the_same(
    collection: Collection, photos: Path, tmp_path: Path
) -> None:
    """Its chance counts twice, and may be the larger one: it is the nearest all the same."""
    Image.open(photos / "flower.jpg").save(tmp_path / "near.jpg", quality=90)
    collection.add(tmp_path / "near.jpg")
    collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    first, second = collection.search(photos / "flower.jpg", k=2)
    assert (first.state, second.state) == ("activated", "passive")
    assert first.distance < second.distance < 0.2
    assert first.false_match_probability > second.false_match_probability


def test_a_released_descriptor_that_is_damaged_is_found_and_forgotten(tmp_path: Path) -> None:
    made = tiny_photos(tmp_path / "photos", 4)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as opened:
        opened.activate(made, tmp_path / "out", recipe=RECIPES[1])
        with closing(sqlite3.connect(tmp_path / "c.homing" / "catalog.sqlite", isolation_level=None)) as database:
            (photo,) = database.execute("SELECT min(photo) FROM released_descriptors").fetchone()
            database.execute("UPDATE released_descriptors SET vector = zeroblob(7) WHERE photo = ?", (photo,))
        (finding,) = opened.check(repair=True)
        assert (finding.part, finding.repaired) == ("release", True)
        assert f"reference {photo} has a descriptor of 7 bytes" in finding.problem
        assert opened.check() == []
        assert len(opened.folder.catalog.descriptors(np.array([photo]))[photo]) == 1


def test_a_copy_is_sure_and_a_distractor_is_not(collection: Collection, photos: Path) -> None:
    collection.add([photos / "flower.jpg", photos / "camera.png"])
    first = collection.search(photos / "flower.jpg", k=1)[0]
    assert (first.photo, first.compared) == (str(photos / "flower.jpg"), "descriptor")
    assert first.false_match_probability < 1e-3
    assert collection.search(photos / "rocket.jpg", max_false_match=1e-3).matches == []


def test_where_nobody_says_the_collection_chooses_and_says_how(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    plan = collection.plan_search()
    probes = collection.index.default_nprobe()
    assert 1 < probes < 4096
    assert (plan.probes, plan.cells, plan.rerank) == (probes, 4096, 100)
    assert str(plan) == f"118,291 references, {probes:,} of 4,096 cells, the nearest 100 compared again by descriptors"
    assert collection.plan_search(k=300).rerank == 300
    assert str(collection.plan_search(probes=1)) == "118,291 references, 1 of 4,096 cells"
    assert str(collection.plan_search(probe_radius=0.1, rerank=50)) == (
        "118,291 references, cells within a probe radius of 0.1, the nearest 50 compared again by descriptors"
    )
    assert collection.plan_search(rerank=0).rerank == 0
    query = photos / "rocket.jpg"
    assert collection.search(query) == collection.search(query, probes=probes, rerank=100)
    assert {match.compared for match in collection.search(query, probes=1)} == {"code"}


def test_distances_of_codes_and_of_descriptors_are_ordered_by_how_rare_they_are(
    collection: Collection, photos: Path
) -> None:
    """A distractor's code may be rarer, and farther, than a descriptor: only chances can be compared."""
    collection.add(photos)
    matches = collection.search(photos / "chelsea.png", k=100)
    assert {match.compared for match in matches} == {"code", "descriptor"}
    chances = [match.false_match_probability for match in matches]
    assert chances == sorted(chances)

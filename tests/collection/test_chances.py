"""How likely a match is by chance, what a search leaves out for it, and what a search does where nobody says."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.catalogue import NewPhoto
from homing.errors import HomingError

DIM, QUERIES = 16, 2000


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
    opened.record([NewPhoto(f"{n}", f"/{n}.jpg", codes[n], rows[n].numpy()) for n in range(count)])
    return opened


@pytest.mark.parametrize("rerank", [0, 200])
@pytest.mark.parametrize("count", [20, 200])
def test_unrelated_queries_find_something_as_often_as_stated(
    tmp_path: Path, book: Codebook, count: int, rerank: int
) -> None:
    with filled(tmp_path, book, count) as collection:
        found = collection.search_descriptors(descriptors(QUERIES, seed=3, dim=DIM), k=1, probes=8, rerank=rerank)
    chances = np.array([matches[0].chance for matches in found])
    for stated in (0.3, 0.1, 0.03):
        assert (chances <= stated).mean() == pytest.approx(stated, rel=0.35)


def test_a_query_that_is_described_often_has_as_many_chances(tmp_path: Path, book: Codebook) -> None:
    with filled(tmp_path, book, 200) as collection:
        turned = descriptors(2500, seed=4, dim=DIM).view(500, 5, DIM)
        found = collection.search_descriptors(turned, k=1, probes=8)
    chances = np.array([matches[0].chance for matches in found])
    assert (chances <= 0.1).mean() == pytest.approx(0.1, rel=0.5)


def test_the_same_distance_is_likelier_in_a_larger_collection(tmp_path: Path, book: Codebook) -> None:
    query = descriptors(20, seed=2, dim=DIM)[7:8]
    chances = []
    for count in (20, 200):
        with filled(tmp_path, book, count) as collection:
            (match,) = collection.search_descriptors(query, k=1)[0]
            assert match.photo == "/7.jpg"
            chances.append(match.chance)
    assert chances[1] == pytest.approx(10 * chances[0], rel=1e-3)


def test_what_may_be_chance_is_left_out(tmp_path: Path, book: Codebook) -> None:
    with filled(tmp_path, book, 200) as collection:
        known, unknown = descriptors(200, seed=2, dim=DIM)[7:8], descriptors(1, seed=6, dim=DIM)
        both = torch.cat([known, unknown])
        everything = collection.search_descriptors(both, k=10)
        left = collection.search_descriptors(both, k=10, false_matches=1e-3)
        assert [match.photo for match in left[0]] == ["/7.jpg"]
        assert left[1] == []
        assert left == [[match for match in some if match.chance <= 1e-3] for some in everything]
        assert [len(some) for some in everything] == [10, 10]
        for wrong in (0, -1, 1.5, float("nan")):
            with pytest.raises(HomingError, match="lies above 0 and is 1 at most"):
                collection.search_descriptors(both, false_matches=wrong)


def test_activation_leaves_what_is_found_by_chance_as_it_was(collection: Collection, photos: Path, tmp_path) -> None:
    """Codes and descriptors are those of originals, whatever was released: one statistic serves both."""
    collection.add(photos / "flower.jpg")
    before = collection.search(photos / "chelsea.png", k=5000)
    collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    after = collection.search(photos / "chelsea.png", k=5000)
    states = {match.state for match in after if match.photo == str(photos / "flower.jpg")}
    assert states <= {"activated"}
    assert [(each.photo, each.distance, each.chance) for each in before] == [
        (each.photo, each.distance, each.chance) for each in after
    ]


def test_a_copy_is_sure_and_a_stranger_is_not(collection: Collection, photos: Path) -> None:
    collection.add([photos / "flower.jpg", photos / "camera.png"])
    first = collection.search(photos / "flower.jpg", k=1)[0]
    assert (first.photo, first.by) == (str(photos / "flower.jpg"), "descriptor")
    assert first.chance < 1e-4
    assert collection.search(photos / "rocket.jpg", false_matches=1e-3) == []


def test_where_nobody_says_the_collection_chooses_and_says_how(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    plan = collection.plan()
    assert (plan.probes, plan.cells, plan.rerank) == (4096, 4096, 100)
    assert str(plan) == "118,291 references, all 4,096 cells, the nearest 100 compared again by descriptors"
    assert collection.plan(k=300).rerank == 300
    assert str(collection.plan(probes=1)) == "118,291 references, 1 of 4,096 cells"
    assert str(collection.plan(margin=0.1, rerank=50)) == (
        "118,291 references, cells within a margin of 0.1, the nearest 50 compared again by descriptors"
    )
    assert collection.plan(rerank=0).rerank == 0
    query = photos / "rocket.jpg"
    assert collection.search(query) == collection.search(query, probes=4096, rerank=100)
    assert {match.by for match in collection.search(query, probes=1)} == {"code"}


def test_distances_of_codes_and_of_descriptors_are_ordered_by_how_rare_they_are(
    collection: Collection, photos: Path
) -> None:
    """A stranger's code may be rarer, and farther, than a descriptor: only chances can be compared."""
    collection.add(photos)
    matches = collection.search(photos / "chelsea.png", k=100)
    assert {match.by for match in matches} == {"code", "descriptor"}
    chances = [match.chance for match in matches]
    assert chances == sorted(chances)

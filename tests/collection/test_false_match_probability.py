"""False-match probabilities, the filter `max_false_match`, and the default search settings."""

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
from homing.collection.references import NewPhotos
from homing.errors import HomingError

DIM, QUERIES = 16, 4000


@pytest.fixture(scope="module")
def book() -> Codebook:
    """A codebook for random, unrelated descriptors."""
    rows = descriptors(3000, seed=1, dim=DIM).numpy()
    return Codebook.train(rows, spec="IVF8,PQ8x6", extractor=FakeExtractor(), name="random")


def filled(path: Path, book: Codebook, count: int) -> Collection:
    """A collection of `count` random descriptors."""
    opened = Collection.create(path / f"{count}.homing", codebook=book)
    rows = descriptors(count, seed=2, dim=DIM)
    codes = book.encode(rows)
    hashes, sources = [f"{n}" for n in range(count)], [f"/{n}.jpg" for n in range(count)]
    opened.record(NewPhotos(hashes, sources, codes, rows.numpy()))
    return opened


@pytest.mark.slow
@pytest.mark.parametrize("rerank", [0, 200])
@pytest.mark.parametrize("count", [20, 200])
def test_false_matches_are_as_frequent_as_stated(tmp_path: Path, book: Codebook, count: int, rerank: int) -> None:
    with filled(tmp_path, book, count) as collection:
        found = collection.search_descriptors(descriptors(QUERIES, seed=3, dim=DIM), k=1, probes=8, rerank=rerank)
    probabilities = np.array([matches[0].false_match_probability for matches in found])
    for stated in (0.3, 0.1, 0.03):
        assert (probabilities <= stated).mean() == pytest.approx(stated, rel=0.35)


def test_each_variant_of_a_query_adds_false_matches(tmp_path: Path, book: Codebook) -> None:
    with filled(tmp_path, book, 200) as collection:
        variants = descriptors(2500, seed=4, dim=DIM).view(500, 5, DIM)
        found = collection.search_descriptors(variants, k=1, probes=8)
    probabilities = np.array([matches[0].false_match_probability for matches in found])
    assert (probabilities <= 0.1).mean() == pytest.approx(0.1, rel=0.5)


def test_a_larger_collection_has_more_false_matches(tmp_path: Path, book: Codebook) -> None:
    query = descriptors(20, seed=2, dim=DIM)[7:8]
    probabilities = []
    for count in (20, 80):  # too few to estimate a density ratio
        with filled(tmp_path, book, count) as collection:
            (match,) = collection.search_descriptors(query, k=1)[0]
            assert match.photo == "/7.jpg"
            probabilities.append(match.false_match_probability)
    assert probabilities[1] == pytest.approx(4 * probabilities[0], rel=1e-3)


def test_max_false_match_omits_likely_false_matches(tmp_path: Path, book: Codebook) -> None:
    with filled(tmp_path, book, 200) as collection:
        known, unknown = descriptors(200, seed=2, dim=DIM)[7:8], descriptors(1, seed=6, dim=DIM)
        both = torch.cat([known, unknown])
        everything = collection.search_descriptors(both, k=10)
        filtered = collection.search_descriptors(both, k=10, max_false_match=1e-3)
        assert [match.photo for match in filtered[0]] == ["/7.jpg"]
        assert filtered[1].matches == ()
        for unfiltered, remaining in zip(everything, filtered, strict=True):
            assert list(remaining) == [match for match in unfiltered if match.false_match_probability <= 1e-3]
        assert [len(matches) for matches in everything] == [10, 10]
        for wrong in (0, -1, 1.5, float("nan")):
            with pytest.raises(HomingError, match="max_false_match must be above 0 and at most 1"):
                collection.search_descriptors(both, max_false_match=wrong)


def test_an_activated_photo_is_also_compared_by_its_released_descriptor(
    collection: Collection, photos: Path, tmp_path: Path
) -> None:
    """Copies of the original and of the released file match; a distractor is compared with both descriptors."""
    collection.add(photos)
    passive = {match.id: match for match in collection.search(photos / "flower.jpg", k=5000)}
    activated = collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")[0].released
    assert activated is not None
    number = collection.storage.find(hashlib.sha256((photos / "flower.jpg").read_bytes()).hexdigest())
    for copy, descriptors_of in ((photos / "flower.jpg", 0), (activated, 1)):
        first = collection.search(copy, k=1)[0]
        assert (first.id, first.state, first.compared) == (number, "activated", "descriptor")
        assert first.distance < 0.02, descriptors_of
        assert first.false_match_probability == pytest.approx(2 * passive[number].false_match_probability, rel=0.5)
    others = collection.search(photos / "flower.jpg", k=5000)
    assert all(each == passive[each.id] for each in others if each.compared == "descriptor" and each.id != number)


def test_an_activated_photo_ranks_before_a_near_duplicate(collection: Collection, photos: Path, tmp_path: Path) -> None:
    """Its false-match probability is doubled and may be larger, but it is the nearest photo."""
    Image.open(photos / "flower.jpg").save(tmp_path / "near.jpg", quality=90)
    collection.add(tmp_path / "near.jpg")
    collection.activate(photos / "flower.jpg", tmp_path / "out", recipe="paper-fast")
    first, second = collection.search(photos / "flower.jpg", k=2)
    assert (first.state, second.state) == ("activated", "passive")
    assert first.distance < second.distance < 0.2
    assert first.false_match_probability > second.false_match_probability


def test_a_damaged_released_descriptor_is_found_and_deleted(tmp_path: Path) -> None:
    originals = tiny_photos(tmp_path / "photos", 4)
    with Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()) as opened:
        opened.activate(originals, tmp_path / "out", recipe=RECIPES[1])
        with closing(sqlite3.connect(tmp_path / "c.homing" / "catalog.sqlite", isolation_level=None)) as database:
            (photo,) = database.execute("SELECT min(photo) FROM released_descriptors").fetchone()
            database.execute("UPDATE released_descriptors SET vector = zeroblob(7) WHERE photo = ?", (photo,))
        (finding,) = opened.check(repair=True)
        assert (finding.part, finding.repaired) == ("release", True)
        assert f"reference {photo} has a descriptor of 7 bytes" in finding.problem
        assert opened.check() == []
        assert len(opened.storage.descriptors(np.array([photo]))[photo]) == 1


def test_only_a_copy_has_a_small_false_match_probability(collection: Collection, photos: Path) -> None:
    collection.add([photos / "flower.jpg", photos / "camera.png"])
    first = collection.search(photos / "flower.jpg", k=1)[0]
    assert (first.photo, first.compared) == (str(photos / "flower.jpg"), "descriptor")
    assert first.false_match_probability < 1e-3
    assert collection.search(photos / "rocket.jpg", max_false_match=1e-3).matches == ()


def test_default_search_settings_are_reported(collection: Collection, photos: Path) -> None:
    collection.add(photos)
    plan = collection.search_settings()
    probes = collection.index.default_nprobe()
    assert 1 < probes < 4096
    assert (plan.probes, plan.cells, plan.rerank) == (probes, 4096, 100)
    assert str(plan) == f"118,291 references, {probes:,} of 4,096 cells, the nearest 100 re-ranked by descriptors"
    assert collection.search_settings(k=300).rerank == 300
    assert str(collection.search_settings(probes=1)) == "118,291 references, 1 of 4,096 cells"
    assert str(collection.search_settings(probe_radius=0.1, rerank=50)) == (
        "118,291 references, cells within a probe radius of 0.1, the nearest 50 re-ranked by descriptors"
    )
    assert collection.search_settings(rerank=0).rerank == 0
    query = photos / "rocket.jpg"
    assert collection.search(query) == collection.search(query, probes=probes, rerank=100)
    assert {match.compared for match in collection.search(query, probes=1)} == {"code"}


def test_matches_by_code_and_by_descriptor_are_ranked_by_probability(collection: Collection, photos: Path) -> None:
    """Distances to codes and to descriptors have different null distributions, so only probabilities are comparable."""
    collection.add(photos)
    matches = collection.search(photos / "chelsea.png", k=100)
    assert {match.compared for match in matches} == {"code", "descriptor"}
    probabilities = [match.false_match_probability for match in matches]
    assert probabilities == sorted(probabilities)

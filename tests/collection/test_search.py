"""Options of a search: probe radius, variants of the query, and re-ranking by descriptors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from homing.collection import Collection
from homing.collection.search import VARIANTS, query_variants
from homing.errors import HomingError
from homing.extractors import describe_images
from homing.imaging import to_image, to_pixels
from homing.photo import Photo


@pytest.fixture
def filled(collection: Collection, photos: Path) -> Collection:
    """Four photos among distractors."""
    collection.add(photos)
    return collection


def query(collection: Collection, file: Path) -> torch.Tensor:
    return describe_images(collection.extractor, [Photo.load(file).pixels()])


def test_query_variants_equal_those_of_pillow(flower: Photo) -> None:
    image = to_image(flower.pixels()).resize((64, 64))
    transpose = Image.Transpose
    kinds = (transpose.ROTATE_90, transpose.ROTATE_180, transpose.ROTATE_270)
    wanted = [image, *(image.transpose(kind) for kind in kinds), ImageOps.mirror(image)]
    variants = query_variants(to_pixels(image))
    assert len(variants) == VARIANTS == 5
    for ours, expected in zip(variants, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(to_image(ours)), np.asarray(expected))


@pytest.mark.parametrize("turn", [Image.Transpose.ROTATE_90, Image.Transpose.FLIP_LEFT_RIGHT])
def test_a_turned_query_has_the_distance_of_the_photo(
    filled: Collection, photos: Path, tmp_path: Path, turn: Image.Transpose
) -> None:
    with Image.open(photos / "rocket.jpg") as image:
        image.transpose(turn).save(tmp_path / "turned.png")
    as_it_is = filled.search(tmp_path / "turned.png", k=3, rerank=3)
    variants = filled.search(tmp_path / "turned.png", k=3, rerank=3, variants=True)
    assert variants[0].photo == as_it_is[0].photo == str(photos / "rocket.jpg")
    assert variants[0].distance < 0.01 < 0.05 < as_it_is[0].distance
    assert filled.search(tmp_path / "turned.png", k=1, variants=True)[0].distance <= (
        filled.search(photos / "rocket.jpg", k=1)[0].distance + 1e-3
    )
    assert len({match.photo for match in variants}) == 3


def test_probe_radius_equals_that_of_the_index(filled: Collection, photos: Path) -> None:
    copy = query(filled, photos / "chelsea.png")
    distances, _ = filled.index.search(copy, 4, probe_radius=0.1)
    matches = filled.search(photos / "chelsea.png", k=4, probe_radius=0.1)
    assert [match.distance for match in matches] == pytest.approx(distances[0].tolist(), abs=1e-5)
    assert matches[0].photo == str(photos / "chelsea.png")
    few, many = (
        len(filled.search(photos / "chelsea.png", k=5000, probe_radius=probe_radius)) for probe_radius in (0.0, 0.2)
    )
    assert 0 < few < many


def test_matches_are_reranked_by_original_descriptors(tmp_path: Path, photos: Path, extractor) -> None:
    with Collection.create(tmp_path / "c.homing", extractor=extractor) as collection:
        collection.add(photos)
        originals = {str(path): query(collection, path)[0].half().float().numpy() for path in photos.iterdir()}
        mixed_query = 0.6 * query(collection, photos / "rocket.jpg") + 0.4 * query(collection, photos / "flower.jpg")
        wanted = {path: float(np.linalg.norm(mixed_query[0].numpy() - each)) for path, each in originals.items()}
        (matches,) = collection.search_descriptors(mixed_query, k=4, rerank=4)
        assert [match.photo for match in matches] == sorted(wanted, key=wanted.__getitem__)
        assert [match.distance for match in matches] == pytest.approx(sorted(wanted.values()), abs=1e-5)
        assert {match.compared for match in matches} == {"descriptor"}
        by_code = collection.search_descriptors(mixed_query, k=4, rerank=0)[0]
        assert {match.compared for match in by_code} == {"code"}
        assert by_code[0].distance != pytest.approx(matches[0].distance, abs=1e-2)
        (nearest,) = collection.search_descriptors(mixed_query, k=1, rerank=3)
        assert list(nearest) == matches[:1]


def test_distractors_keep_the_distance_of_their_codes(filled: Collection, photos: Path) -> None:
    before = {match.photo: match for match in filled.search(photos / "flower.jpg", k=50, rerank=0)}
    again = filled.search(photos / "flower.jpg", k=50, rerank=50)
    assert again[0].photo == str(photos / "flower.jpg")
    assert again[0].compared == "descriptor"
    assert again[0].distance < 1e-3 < before[again[0].photo].distance  # the descriptor is its own, the code is not
    assert again[1:] == [before[match.photo] for match in again[1:]]
    assert {match.compared for match in again[1:]} == {"code"}


@pytest.mark.parametrize(
    ("options", "line"),
    [({"probes": 2, "probe_radius": 0.1}, "choose probes or a probe radius, got both: 2 and 0.1"),
     ({"probe_radius": -1.0}, "a squared distance of at least 0, got -1"),
     ({"rerank": 9}, r"rerank must be at least k \(10\), got 9")],
)  # fmt: skip
def test_wrong_options_are_rejected_in_one_line(filled: Collection, photos: Path, options, line: str) -> None:
    with pytest.raises(HomingError, match=line):
        filled.search(photos / "flower.jpg", **options)


def test_an_empty_collection_has_no_matches(tmp_path: Path, photos: Path, extractor) -> None:
    with Collection.create(tmp_path / "c.homing", extractor=extractor) as collection:
        assert collection.search(photos / "flower.jpg", probe_radius=0.1, variants=True, rerank=20).matches == ()

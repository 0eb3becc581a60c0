"""Add, activate, search and open again, with a codebook of every family."""

from pathlib import Path

import pytest
import torch
from tests.conftest import descriptors
from torch import nn

from homing.codebooks import Codebook
from homing.collection import Collection
from homing.errors import CodebookError
from homing.extractors import NetworkExtractor

SPECS = [
    "IVF4,Flat", "PCA16,LSH", "ITQ16,LSH", "OPQ4_16,PQ4x4", "RQ4x4", "SQ4", "PQ8x4fs", "IVF4,PQ8x4fs", "RR16,RaBitQ",
    "IVF4,RaBitQ", "HNSW8,PQ8x4", "HNSW8,RaBitQ", "Flat",
]  # fmt: skip


@pytest.fixture(scope="module")
def network() -> NetworkExtractor:
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, 32, 5, stride=4), nn.AdaptiveAvgPool2d(1)
    )
    return NetworkExtractor(layers, name="tiny", size=64, device="cpu")


@pytest.mark.parametrize("spec", SPECS)
def test_photos_are_added_activated_and_found(
    spec: str, network: NetworkExtractor, photos: Path, tmp_path: Path
) -> None:
    rows = descriptors(500, dim=network.dim).numpy()
    book = Codebook.train(rows, spec=spec, extractor=network, name="mine")
    book.write(tmp_path / "mine.codebook")
    with Collection.create(tmp_path / "c", codebook=tmp_path / "mine.codebook", extractor=network) as collection:
        collection.add(photos)
        to_activate = [photos / "flower.jpg", photos / "rocket.jpg"]
        if spec == "Flat":
            with pytest.raises(CodebookError, match="nothing to gain"):
                collection.activate(to_activate, tmp_path / "out", recipe="paper-fast")
        else:
            outcomes = collection.activate(to_activate, tmp_path / "out", recipe="paper-fast")
            assert {outcome.state for outcome in outcomes} <= {"activated", "unchanged"}
            assert any(outcome.state == "activated" for outcome in outcomes)
        before = [collection.search(path, k=4) for path in sorted(photos.iterdir())]
    (tmp_path / "c" / "index.faiss").rename(
        tmp_path / "snapshot"
    )  # so that the index is rebuilt from the codes in the catalog
    with Collection.open(tmp_path / "c", extractor=network) as again:
        after = [again.search(path, k=4) for path in sorted(photos.iterdir())]
    assert after == before
    for path, matches in zip(sorted(photos.iterdir()), before, strict=True):
        assert {Path(match.photo).name for match in matches} == {each.name for each in photos.iterdir()}
        nearest = [match.photo for match in matches if match.distance == matches[0].distance]
        assert str(path) in nearest

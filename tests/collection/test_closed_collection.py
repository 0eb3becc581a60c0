"""A closed collection refuses every use in one way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.collection.tiny import tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection
from homing.errors import CollectionError


@pytest.fixture
def closed(tmp_path: Path) -> Collection:
    with Collection.create(tmp_path / "c", codebook=tiny_codebook(), extractor=tiny_extractor()) as opened:
        opened.add(tiny_photos(tmp_path / "photos", 2))
        opened.search(torch.rand(3, 64, 64))
    return opened


@pytest.mark.parametrize(
    "use",
    [
        lambda c: c.search(torch.rand(3, 64, 64)),
        lambda c: c.search_descriptors(torch.rand(1, c.extractor.dim)),
        lambda c: c.search_settings(),
        lambda c: c.add(torch.rand(3, 64, 64)),
        lambda c: c.activate(torch.rand(3, 64, 64), "out"),
        lambda c: c.activate_passive("out"),
        lambda c: c.select(1),
        lambda c: c.remove(1),
        lambda c: c.references(),
        lambda c: c.info(),
        lambda c: c.check(),
        lambda c: c.export("out"),
        lambda c: c.index,
        lambda c: c.__enter__(),
    ],
)
def test_a_closed_collection_says_so(use: Callable[[Collection], object], closed: Collection) -> None:
    with pytest.raises(CollectionError, match=r"^the collection .* is closed; open it again$"):
        use(closed)


def test_a_collection_can_be_closed_twice(closed: Collection) -> None:
    closed.close()
    assert repr(closed).endswith(", closed>")

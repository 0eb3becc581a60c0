"""Networks whose authors publish the weights: files of their layout, with random weights, through the whole way."""

from pathlib import Path

import pytest
import torch
from published_files import PUBLISHED, isc

from homing import extractors
from homing.errors import HomingError, UnknownNameError
from homing.extractors.isc import isc_dt1
from homing.extractors.published import ADDRESSES


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_network_gives_what_its_authors_network_gives(name: str, tmp_path: Path) -> None:
    published = PUBLISHED[name]()
    torch.save(published.held, tmp_path / "downloaded")
    extractors.fetch(name, file=tmp_path / "downloaded")
    extractor = extractors.load(name, device="cpu")
    assert (extractor.name, extractor.dim, extractor.size) == (name, published.dim, published.size)
    images = torch.rand(2, 3, extractor.size, extractor.size)
    images[1] *= 0.1  # far enough from the other, even for random weights
    with torch.no_grad():
        theirs = published(images)
    image = images[:1].requires_grad_(name != "isc_dt1")  # too slow at 512 px: below
    ours = extractor(image)
    assert (ours[0] - theirs[0]).norm() < 0.01 * (theirs[1] - theirs[0]).norm()
    if image.requires_grad:
        ours[0, 0].backward()
        assert image.grad is not None
        assert (image.grad != 0).float().mean() > 0.9


def test_gradients_of_the_slowest_network_reach_the_pixels() -> None:
    pixels = torch.randn(1, 3, 64, 64, requires_grad=True)
    isc_dt1(isc().held).eval()(pixels)[0, 0].backward()
    assert pixels.grad is not None
    assert (pixels.grad != 0).float().mean() > 0.9


def test_every_address_has_its_network_and_the_other_way_round() -> None:
    names = set(extractors.available())
    assert set(ADDRESSES) == set(extractors.fetched()) <= names
    assert set(PUBLISHED) | {"sscd_disc_advanced"} == set(ADDRESSES)


def test_what_is_not_fetched_says_how_to_fetch_it() -> None:
    with pytest.raises(HomingError, match="run: homing extractors fetch sscd_disc_mixup"):
        extractors.load("sscd_disc_mixup")
    with pytest.raises(UnknownNameError, match="did you mean 'sscd_disc_mixup'"):
        extractors.fetch("sscd_disc_mixpu")


def test_a_file_of_another_network_is_not_taken(tmp_path: Path, cache: Path) -> None:
    other = {"conv1.weight": torch.zeros(64, 3, 7, 7)}
    torch.save(other, tmp_path / "other.pt")
    for name in ("sscd_disc_mixup", "isc_dt1"):
        with pytest.raises(HomingError, match=f"does not hold {name}"):
            extractors.fetch(name, file=tmp_path / "other.pt")
    assert not list(cache.iterdir())
    assert not any(extractors.fetched().values())

"""Fixtures for many tests: the default network and codebook, real photos, and a bucket."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
import torch

from homing import codebooks, extractors
from homing.codebooks import Codebook
from homing.collection import Collection
from homing.extractors import Extractor
from homing.photo import Photo
from tests.servers import s3, s3_server  # noqa: F401  # fixtures

REAL = {"skimage.data": ("chelsea.png", "camera.png", "rocket.jpg"), "sklearn.datasets.images": ("flower.jpg",)}


@pytest.fixture(scope="session")
def extractor() -> Extractor:
    return extractors.load("homing-1", device="cpu")


@pytest.fixture(scope="session")
def codebook() -> Codebook:
    return codebooks.load("homing-1")


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of four real photos: color and gray, PNG and JPEG. Tests must not change it."""
    folder = tmp_path_factory.mktemp("photos")
    for package, names in REAL.items():
        for name in names:
            folder.joinpath(name).write_bytes(files(package).joinpath(name).read_bytes())
    return folder


@pytest.fixture
def flower(photos: Path) -> Photo:
    return Photo.load(photos / "flower.jpg")


@pytest.fixture
def collection(tmp_path: Path, extractor: Extractor) -> Collection:
    """An empty collection with the bundled distractors."""
    opened = Collection.create(tmp_path / "test.homing", with_distractors=True, extractor=extractor)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def torch_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torchvision cache with a random AlexNet for LPIPS; the unused classifier is left out to save space."""
    from torchvision.models import AlexNet_Weights, alexnet

    folder = tmp_path_factory.mktemp("torch")
    (folder / "hub" / "checkpoints").mkdir(parents=True)
    weights = alexnet().state_dict()
    for name in [name for name in weights if name.startswith("classifier")]:
        weights[name] = torch.zeros(1).expand(weights[name].shape)
    torch.save(weights, folder / "hub" / "checkpoints" / Path(AlexNet_Weights.DEFAULT.url).name)
    return folder


class FakeExtractor:
    """An extractor that is never run: training a codebook needs its name and fingerprint only."""

    name, fingerprint, dim, size, device = "random", "f" * 64, 32, 48, torch.device("cpu")

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def resize(self, image: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


def descriptors(count: int, seed: int = 0, dim: int = 32) -> torch.Tensor:
    """Random descriptors of unit norm, (count, dim)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, dim, generator=generator), dim=1)


def train(spec: str, dim: int = 32) -> Codebook:
    """A codebook of any spec for random descriptors."""
    return Codebook.train(descriptors(1000, dim=dim).numpy(), spec=spec, extractor=FakeExtractor(), name="test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures that they use. Slow tests are marked individually."""
    markers = {"chromium": pytest.mark.browser, "ray": pytest.mark.cluster}
    for item in items:
        for fixture in markers.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(markers[fixture])


@pytest.fixture(autouse=True)
def _seed_pytorch() -> None:
    torch.manual_seed(0)

"""SSL watermarks: messages in the descriptors of a network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.bench.helpers import small_photos
from torch import nn

from homing import codebooks, extractors
from homing.errors import HomingError
from homing.extractors import Extractor, NetworkExtractor, describe_images
from homing.perception import JND, measure
from homing.photo import Photo
from homing.watermarks.base import identifier, mark
from homing.watermarks.ssl import MARGIN, RECIPE, Hinge, SSLDecoder, SSLWatermark


@pytest.fixture(scope="module")
def network() -> Extractor:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(3))
    return NetworkExtractor(layers, name="tiny", size=64, device="cpu")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> list[Photo]:
    folder = small_photos(tmp_path_factory.mktemp("photos") / "few", ["a"], seed=1)
    return [Photo.load(path) for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def distractors(network: Extractor, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    folder = small_photos(tmp_path_factory.mktemp("distractors") / "many", [str(n) for n in range(40)], seed=2)
    return describe_images(network, [Photo.load(path).pixels() for path in sorted(folder.iterdir())]).numpy()


def test_directions_come_from_the_key_and_are_whitened(network: Extractor) -> None:
    rng = np.random.default_rng(0)
    rows = (3 + rng.normal(size=(500, 108)) * rng.uniform(0.5, 2, 108)) @ rng.normal(size=(108, 108))
    rows = (rows * 1e-2).astype(np.float32)
    decoder = SSLDecoder(network, rows, bits=6, key=1)
    scores = (torch.from_numpy(rows) @ decoder._directions - decoder._mean).numpy()
    assert np.allclose(scores.mean(axis=0), 0, atol=1e-3)
    # The variance is slightly below one along directions with almost no variance.
    assert np.allclose(np.cov(scores.T, bias=True), np.eye(6), atol=0.3)
    assert np.cov(rows.T).max() < 0.5 < np.cov(scores.T).max() < 1.01
    same, other = (SSLDecoder(network, rows, bits=6, key=key) for key in (1, 2))
    assert decoder.fingerprint == same.fingerprint != other.fingerprint
    assert torch.equal(decoder._directions, same._directions)
    assert not torch.allclose(decoder._directions, other._directions)


@pytest.mark.slow
def test_messages_are_read_from_files_with_the_key_alone(flower: Photo) -> None:
    network, book = extractors.load("imagenet-lite0", device="cpu"), codebooks.load("imagenet-lite0")
    rows = book.decode(codebooks.bundled_distractors(book).codes[:2000]).numpy()
    watermark = SSLWatermark(SSLDecoder(network, rows, bits=8), replace(RECIPE, steps=8, lr=0.3))
    message = identifier(flower.sha256, 8)
    assert not torch.equal(describe_images(watermark.decoder, [flower.pixels()])[0] > 0, message)
    (marked,) = mark([flower], watermark=watermark, budget=JND(psnr=42.0))
    assert (marked.state, marked.reason) == ("marked", None)
    again = Photo.decode(marked.data, "again").pixels()
    assert torch.equal(describe_images(SSLDecoder(network, rows, bits=8), [again])[0] > 0, message)
    assert not torch.equal(describe_images(SSLDecoder(network, rows, bits=8, key=7), [again])[0] > 0, message)
    assert marked.quality == measure(flower.pixels(), again)
    assert 42.0 <= marked.quality.psnr < 42.6


def test_the_hinge_loss_is_zero_beyond_the_margin() -> None:
    messages = torch.tensor([[True, False], [False, False]])
    hinge = Hinge(messages)
    deep = torch.tensor([[9.0, -9.0], [-5.0, -6.0]])
    assert torch.equal(hinge(deep), torch.zeros(2))
    scores = torch.tensor([[1.0, -1.0], [3.0, -6.0]], dtype=torch.float64).requires_grad_()
    assert hinge(scores).tolist() == pytest.approx([MARGIN - 1, (MARGIN + 3) / 2])
    assert torch.autograd.gradcheck(hinge, scores)


def test_an_unreachable_budget_leaves_the_photo_unchanged(
    network: Extractor, distractors: np.ndarray, few: list[Photo]
) -> None:
    watermark = SSLWatermark(SSLDecoder(network, distractors, bits=4), replace(RECIPE, steps=1))
    (marked,) = mark(few, watermark=watermark, budget=JND(psnr=79.0))
    assert (marked.state, marked.data) == ("unchanged", few[0].data)
    assert "79 dB" in marked.reason


def test_a_message_that_cannot_be_written_is_reported(
    network: Extractor, distractors: np.ndarray, few: list[Photo]
) -> None:
    watermark = SSLWatermark(SSLDecoder(network, distractors, bits=20), replace(RECIPE, steps=1))
    (marked,) = mark(few, watermark=watermark, budget=JND(psnr=45.0))
    assert marked.state == "marked"
    assert "of 20 bits right" in marked.reason


@pytest.mark.parametrize(("bits", "count"), [(0, 10), (109, 10), (4, 1)])
def test_too_many_bits_or_too_few_descriptors_are_refused(network: Extractor, bits: int, count: int) -> None:
    with pytest.raises(HomingError, match="take 1 to 108 bits and at least 2 descriptors"):
        SSLDecoder(network, np.zeros((count, 108)), bits=bits)


def test_an_identifier_is_the_end_of_a_hash() -> None:
    assert identifier("0" * 63 + "5", 4).tolist() == [True, False, True, False]

import warnings
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image
from tests.conftest import descriptors
from tests.photo.photo_files import changed_photo

from homing import extractors
from homing.activation import RECIPES, activate_batch
from homing.activation.release_check import ReleaseCheck
from homing.codebooks import Codebook
from homing.errors import CodebookError, PhotoError
from homing.extractors import describe_images
from homing.objectives import objective_for
from homing.perception import JND, measure
from homing.photo import Photo

PAPER = RECIPES["paper"]


@pytest.fixture(scope="module")
def loaded(photos) -> list[Photo]:
    return [Photo.load(path) for path in sorted(photos.iterdir())]


@pytest.fixture(scope="module")
def activations(loaded, extractor, codebook):
    return activate_batch(loaded, extractor=extractor, codebook=codebook, recipe=PAPER)


@pytest.mark.slow
def test_reported_quality_and_losses_hold_for_the_file(loaded, activations, extractor, codebook) -> None:
    for photo, result in zip(loaded, activations, strict=True):
        assert (result.state, result.sha256) == ("activated", photo.sha256)
        before, after = photo.pixels(), Photo.decode(result.data, "again").pixels()
        assert measure(before, after) == result.quality
        was, now = describe_images(extractor, [before]), describe_images(extractor, [after])
        assert codebook.cells(was) == codebook.cells(now)
        target = codebook.reconstruct(was)
        assert float((now - target).square().sum()) == pytest.approx(result.loss_after, abs=1e-5)
        assert result.loss_after < 0.9 * result.loss_before


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_measurements_on_a_gpu_hold_for_the_file(loaded, extractor, codebook) -> None:
    gpu = extractors.load(extractor.name, device="cuda")
    for photo, result in zip(
        loaded, activate_batch(loaded, extractor=gpu, codebook=codebook, recipe=PAPER), strict=True
    ):
        assert result.state == "activated"
        quality = measure(photo.pixels(), Photo.decode(result.data, "again").pixels())
        assert result.quality.psnr == pytest.approx(quality.psnr, abs=1e-3)
        assert result.quality.ssim == pytest.approx(quality.ssim, abs=1e-4)
        assert result.quality.linf == pytest.approx(quality.linf, abs=1e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_synchronizations_do_not_grow_with_the_photos(flower: Photo, extractor, codebook) -> None:
    gpu = extractors.load(extractor.name, device="cuda")

    def waits(count: int) -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                activate_batch([flower] * count, extractor=gpu, codebook=codebook, recipe=RECIPES["homing-fast"])
            finally:
                torch.cuda.set_sync_debug_mode("default")
        return sum("synchronizing" in str(each.message) for each in caught)

    waits(2)  # tensors that are sent once and cached
    few = waits(2)
    assert few > 0 and waits(8) <= few


def test_files_meet_the_target_psnr(activations) -> None:
    for result in activations:
        assert 43.8 <= result.quality.psnr <= 44.4


def test_files_keep_format_and_size(loaded, activations) -> None:
    for photo, result in zip(loaded, activations, strict=True):
        again = Photo.decode(result.data, "again")
        assert again.format == photo.format
        assert again.stored_pixels.shape == photo.stored_pixels.shape
        if again.format == "JPEG":
            assert len(result.data) < 1.25 * len(photo.data)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(alpha=st.floats(0.5, 8.0), seed=st.integers(0, 100))
def test_eight_bits_stay_within_the_budget(flower: Photo, alpha: float, seed: int) -> None:
    image = flower.pixels()
    pixel_bound = JND(alpha=alpha).pixel_bound(image)
    change = pixel_bound * torch.empty_like(image).uniform_(-1, 1, generator=torch.Generator().manual_seed(seed))
    saved = Photo.decode(changed_photo(flower, change).encode("png"), "saved").pixels()
    assert ((saved - image).abs() <= pixel_bound + 0.5 / 255 + 1e-6).all()


def test_a_change_that_raises_the_loss_is_not_released(flower: Photo, extractor, codebook) -> None:
    image = flower.pixels()
    (result,) = activate_batch([flower], extractor=extractor, codebook=codebook, recipe=PAPER)
    change = Photo.decode(result.data, "changed").pixels() - image
    (refused,) = activate_batch(
        [flower], extractor=extractor, codebook=codebook, recipe=PAPER, loop=lambda *_, **__: [-change]
    )
    assert refused.state == "unchanged"
    assert refused.data == flower.data
    assert refused.reason in {
        "the change moves it into another cell of the index",
        "no change within the budget lowers its loss",
    }


def test_coarse_jpeg_tables_are_replaced_by_finer_ones(photos: Path, tmp_path: Path, extractor, codebook) -> None:
    coarse = tmp_path / "coarse.jpg"
    Image.open(photos / "flower.jpg").save(coarse, quality=8)
    (result,) = activate_batch([Photo.load(coarse)], extractor=extractor, codebook=codebook, recipe=PAPER)
    assert result.state == "activated"
    assert "finer quantization" in result.reason
    assert result.quality.psnr >= 43.8


def test_an_unreachable_psnr_leaves_the_photo_unchanged(flower: Photo, extractor, codebook) -> None:
    recipe = replace(PAPER, steps=1, budget=JND(psnr=75.0))
    (result,) = activate_batch([flower], extractor=extractor, codebook=codebook, recipe=recipe)
    assert result.state == "unchanged"
    assert "below the target of 75 dB" in result.reason
    assert result.data == flower.data


def test_a_rejected_change_is_halved(flower: Photo, extractor, codebook, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(PAPER, budget=JND(alpha=3.0))
    (result,) = activate_batch([flower], extractor=extractor, codebook=codebook, recipe=recipe, format="png")
    refuse = ReleaseCheck._rejection_reason
    # At full strength this photo stays in its cell; reject it anyway, to test the next attempt.
    monkeypatch.setattr(
        ReleaseCheck,
        "_rejection_reason",
        lambda self, candidate, *more: "too far" if candidate.strength > 0.6 else refuse(self, candidate, *more),
    )
    (weaker,) = activate_batch([flower], extractor=extractor, codebook=codebook, recipe=recipe, format="png")
    assert weaker.state == "activated"
    assert weaker.reason == "changed by 0.5 of what the budget allows"
    assert result.quality.psnr + 4 < weaker.quality.psnr < result.quality.psnr + 8


@pytest.mark.parametrize(
    "spec", ["IVF16,Flat", "PCA64,LSH", "ITQ64,LSH", "RR64,RaBitQ", "RQ4x4", "PQ8x4fs", "HNSW8,PQ8x4"]
)
def test_every_family_is_evaluated_by_its_own_objective(photos: Path, extractor, spec: str) -> None:
    rows = descriptors(1000, dim=extractor.dim).numpy()
    book = Codebook.train(rows, spec=spec, extractor=extractor, name="test")
    photo = Photo.load(photos / "chelsea.png")
    (result,) = activate_batch([photo], extractor=extractor, codebook=book, recipe=RECIPES["paper-fast"])
    was, now = (
        describe_images(extractor, [photo.pixels()]),
        describe_images(extractor, [Photo.decode(result.data, "again").pixels()]),
    )
    objective = objective_for(book, was)
    assert result.state == "activated"
    assert float(objective(was)) == pytest.approx(result.loss_before, abs=1e-6)
    assert float(objective(now)) == pytest.approx(result.loss_after, abs=1e-6)
    assert result.loss_after < result.loss_before
    np.testing.assert_array_equal(result.code, book.encode(was)[0])
    assert torch.equal(book.cells(was), book.cells(now))


def test_exact_search_has_nothing_to_gain(flower: Photo, extractor) -> None:
    rows = descriptors(300, dim=extractor.dim).numpy()
    book = Codebook.train(rows, spec="Flat", extractor=extractor, name="test")
    with pytest.raises(CodebookError, match=r"cannot be activated for spec 'Flat'.*nothing to gain"):
        activate_batch([flower], extractor=extractor, codebook=book, recipe=PAPER)


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_a_cmyk_photo_is_activated_and_stays_cmyk(loaded, extractor, codebook, format: str) -> None:
    buffer = BytesIO()
    with Image.open(BytesIO(loaded[0].data)) as image:
        image.convert("CMYK").save(buffer, format, **({"quality": 95} if format == "JPEG" else {}))
    photo = Photo.decode(buffer.getvalue(), "cmyk")
    (result,) = activate_batch([photo], extractor=extractor, codebook=codebook, recipe=PAPER)
    assert result.state == "activated"
    written = Photo.decode(result.data, "again")
    assert (written.format, written.stored_pixels.shape[2]) == (format, 4)
    assert measure(photo.pixels(), written.pixels()) == result.quality
    assert result.quality.psnr >= PAPER.budget.psnr


@pytest.mark.parametrize("format", ["png", "webp", "avif", "heic", "tiff", "bmp", "jpeg"])
def test_every_format_keeps_gain_and_psnr(photos: Path, extractor, codebook, format: str) -> None:
    photo = Photo.load(photos / "chelsea.png")
    (result,) = activate_batch(
        [photo], extractor=extractor, codebook=codebook, recipe=RECIPES["paper-fast"], format=format
    )
    assert result.state == "activated"
    assert 43.8 <= result.quality.psnr <= 44.4
    assert result.loss_after < 0.9 * result.loss_before


def test_a_photo_that_cannot_be_written_does_not_stop_the_others(flower: Photo, extractor, codebook) -> None:
    long = Photo.decode(_png(np.zeros((32, 16400), np.uint8)), "long.png")
    recipe = replace(PAPER, steps=1)
    refused, result = activate_batch(
        [long, flower], extractor=extractor, codebook=codebook, recipe=recipe, format="webp"
    )
    assert isinstance(refused, PhotoError)
    assert "long.png" in str(refused)
    assert Photo.decode(result.data, "result").format == "WEBP"


def _png(pixels: np.ndarray) -> bytes:
    import io

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()

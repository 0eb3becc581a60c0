import math

import kornia.metrics
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from homing.errors import HomingError
from homing.perception import measure


@settings(deadline=None, max_examples=20)
@given(noise=st.floats(0.002, 0.2), seed=st.integers(0, 1000), height=st.integers(32, 90))
def test_psnr_and_linf_agree_with_scikit_image_and_numpy(noise: float, seed: int, height: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.random((3, height, 64), dtype=np.float32)
    second = (first + noise * rng.standard_normal(first.shape)).clip(0, 1).astype(np.float32)
    quality = measure(torch.from_numpy(first), torch.from_numpy(second))
    assert quality.psnr == pytest.approx(peak_signal_noise_ratio(first, second, data_range=1.0), abs=1e-3)
    assert quality.linf == pytest.approx(255 * np.abs(first - second).max(), abs=1e-3)


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1])
def test_ssim_agrees_with_scikit_image(flower, noise: float) -> None:
    first = flower.pixels()
    second = (first + noise * torch.randn_like(first)).clamp(0, 1)
    expected = structural_similarity(
        first.numpy(), second.numpy(), channel_axis=0, data_range=1.0, gaussian_weights=True, sigma=1.5,
        use_sample_covariance=False,
    )  # fmt: skip
    assert measure(first, second).ssim == pytest.approx(expected, abs=4e-3)


def test_equal_photos_have_infinite_psnr(flower) -> None:
    quality = measure(flower.pixels(), flower.pixels())
    assert math.isinf(quality.psnr)
    assert quality.ssim == pytest.approx(1.0, abs=1e-5)
    assert quality.linf == 0


def test_different_sizes_are_refused() -> None:
    with pytest.raises(HomingError, match="same size, got 40×32 and 41×32"):
        measure(torch.zeros(3, 32, 40), torch.zeros(3, 32, 41))


@pytest.mark.parametrize(("height", "width"), [(32, 4000), (375, 500), (33, 40)])
def test_ssim_in_bands_equals_ssim_of_the_whole_image(height: int, width: int) -> None:
    rng = torch.Generator().manual_seed(height)
    first = torch.rand(3, height // 4 + 1, width // 4, generator=rng, dtype=torch.float64)
    first = torch.nn.functional.interpolate(first[None], (height, width), mode="bicubic")[0].clamp(0, 1)
    second = (first + 0.02 * torch.randn(first.shape, generator=rng, dtype=torch.float64)).clamp(0, 1)
    expected = float(kornia.metrics.ssim(first[None], second[None], window_size=11).mean())
    assert measure(first, second).ssim == pytest.approx(expected, abs=1e-8)
    assert measure(first.float(), second.float()).ssim == pytest.approx(expected, abs=2e-5)

import numpy as np
import pytest
import torch
from scipy import ndimage

from homing.perception import jnd_map
from homing.perception.budgets import PRINTED


def printed(image: np.ndarray) -> np.ndarray:
    """JND map of (H, W, 3) in 0..255, by the formula in the appendix of the paper."""
    luma = image @ np.array([0.299, 0.587, 0.114])
    background = ndimage.uniform_filter(luma, 5, mode="nearest")
    gradient = np.hypot(ndimage.sobel(luma, axis=0, mode="nearest"), ndimage.sobel(luma, axis=1, mode="nearest"))
    adaptation = np.where(background < 127, 17 * (1 - np.sqrt(background / 127)), 3 * (background - 127) / 128 + 3)
    masking = 0.115 * 16 * gradient**2.4 / (gradient**2 + 26**2)
    return adaptation + masking - 0.3 * np.minimum(adaptation, masking)


def reference(image: np.ndarray) -> np.ndarray:
    """JND map of (H, W, 3) in 0..255: a NumPy version written from the formulas."""
    luma = image @ np.array([0.299, 0.587, 0.114])
    kernel = np.ones((5, 5))
    kernel[1:4, 1:4] = 2
    kernel[2, 2] = 0
    background = ndimage.correlate(luma, kernel / 32, mode="nearest")
    gradient = np.hypot(ndimage.sobel(luma, axis=0, mode="nearest"), ndimage.sobel(luma, axis=1, mode="nearest"))
    dark = 17 * (1 - np.sqrt(background / 127)) + 3
    bright = 3 * (background - 127) / 128 + 3
    adaptation = np.where(background < 127, dark, bright)
    masking = 0.117 * 16 * gradient**2.4 / (gradient**2 + 26**2)
    return np.maximum(adaptation + masking - 0.3 * np.minimum(adaptation, masking), 5)


def test_agrees_with_a_numpy_version(flower) -> None:
    image = flower.pixels()
    ours = 255 * jnd_map(image[None])[0, 0].numpy()
    np.testing.assert_allclose(ours, reference(255 * image.permute(1, 2, 0).double().numpy()), rtol=1e-3)


def test_printed_variant_agrees_with_the_printed_formula(flower) -> None:
    image = flower.pixels()
    ours = 255 * jnd_map(image[None], PRINTED)[0, 0].numpy()
    np.testing.assert_allclose(ours, printed(255 * image.permute(1, 2, 0).double().numpy()), rtol=1e-3, atol=1e-3)


def test_texture_and_darkness_allow_more_than_flat_gray() -> None:
    flat, dark = torch.full((1, 3, 32, 32), 0.5), torch.zeros(1, 3, 32, 32)
    texture = (torch.rand(1, 1, 32, 32) > 0.5).float().expand(1, 3, 32, 32)
    assert jnd_map(flat).mean() < jnd_map(dark).mean() < jnd_map(texture).mean()


def test_only_the_printed_variant_is_discontinuous_at_127() -> None:
    levels = [torch.full((1, 3, 8, 8), level / 255) for level in (126.9, 127.1)]
    below, above = (jnd_map(flat).mean() for flat in levels)
    assert abs(float(below - above)) < 1e-4
    below, above = (255 * jnd_map(flat, PRINTED).mean() for flat in levels)
    assert float(above - below) > 2.9


GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_batches_agree_with_the_numpy_version(device: str) -> None:
    images = torch.rand(4, 3, 33, 47, generator=torch.Generator().manual_seed(0))
    ours = jnd_map(images.to(device)).cpu()
    assert ours.shape == (4, 1, 33, 47)
    for image, of_it in zip(images, ours, strict=True):
        torch.testing.assert_close(jnd_map(image[None])[0], of_it)
        np.testing.assert_allclose(255 * of_it[0], reference(255 * image.permute(1, 2, 0).double().numpy()), rtol=1e-3)

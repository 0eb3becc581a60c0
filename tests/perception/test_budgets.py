import pytest
import torch

from homing.errors import HomingError
from homing.perception import BUDGETS, JND, Budget, Linf, PrintedJND, UniformJND, budget_named, jnd_map
from homing.perception.budgets import PRINTED
from homing.photo import Photo

every_kind = pytest.mark.parametrize("kind", BUDGETS.values(), ids=list(BUDGETS))


def test_pixel_bound_uses_the_papers_units(flower) -> None:
    image = flower.pixels()
    pixel_bound = JND(alpha=3.0).pixel_bound(image)
    jnd = jnd_map(image[None])[0, 0]
    for channel, (deviation, luma) in enumerate(((0.229, 0.299), (0.224, 0.587), (0.225, 0.114))):
        torch.testing.assert_close(pixel_bound[channel], 3 * deviation * 0.072 / luma * jnd)


def test_printed_jnd_uses_the_printed_map(flower) -> None:
    image = flower.pixels()
    used, printed = (kind(alpha=3.0).pixel_bound(image) for kind in (JND, PrintedJND))
    torch.testing.assert_close(printed, used * jnd_map(image[None], PRINTED)[0] / jnd_map(image[None])[0])


def test_uniform_jnd_has_equal_channels_and_the_rms_of_jnd(flower) -> None:
    uneven, even = (kind(alpha=3.0).pixel_bound(flower.pixels()) for kind in (JND, UniformJND))
    assert torch.equal(even[0], even[1]) and torch.equal(even[1], even[2])
    assert float(even.square().mean()) == pytest.approx(float(uneven.square().mean()), rel=1e-4)
    torch.testing.assert_close(even[0] / uneven[0], (even[0] / uneven[0]).mean().expand_as(even[0]))


def test_linf_bound_is_constant(flower, photos) -> None:
    assert torch.allclose(255 * Linf(alpha=4.0).pixel_bound(flower.pixels()), torch.tensor(4.0))
    gray = Linf(alpha=4.0).pixel_bound(Photo.load(photos / "camera.png").pixels())
    assert torch.allclose(255 * gray, torch.tensor(4.0))


@every_kind
def test_gray_stays_gray(photos, kind: type[Budget]) -> None:
    red, green, blue = kind(alpha=3.0).pixel_bound(Photo.load(photos / "camera.png").pixels())
    assert torch.equal(red, green) and torch.equal(green, blue)


@every_kind
def test_a_photo_with_zero_pixel_bound_hardly_changes(kind: type[Budget]) -> None:
    """The printed map is zero just below mid-gray, where no strength meets a PSNR."""
    pixel_bound = kind(psnr=43.8).pixel_bound(torch.full((3, 40, 40), 126.999999 / 255))
    assert pixel_bound.isfinite().all()
    assert pixel_bound.max() < 0.1


@every_kind
@pytest.mark.parametrize("psnr", [35.0, 43.8, 50.0])
def test_the_typical_share_of_the_bound_meets_the_psnr(flower, kind: type[Budget], psnr: float) -> None:
    pixel_bound = kind(psnr=psnr).pixel_bound(flower.pixels())
    error = (0.8 * pixel_bound).square().mean()
    assert float(-10 * torch.log10(error)) == pytest.approx(psnr, abs=0.01)


def test_names_and_descriptions_of_budgets() -> None:
    assert [str(kind(psnr=43.8)) for kind in BUDGETS.values()] == [
        "JND at 43.8 dB", "printed JND at 43.8 dB", "uniform JND at 43.8 dB", "L∞ at 43.8 dB",
    ]  # fmt: skip
    assert str(Linf(alpha=4)) == "L∞ with alpha 4"
    assert budget_named("linf") is Linf
    with pytest.raises(
        HomingError, match="unknown budget 'lnf'; did you mean 'linf'\\? Available: jnd, jnd-printed, jnd-uniform, linf"
    ):
        budget_named("lnf")


@every_kind
@pytest.mark.parametrize("wrong", [{}, {"psnr": 43.8, "alpha": 3.0}, {"psnr": 5.0}, {"psnr": 100.0}, {"alpha": 0.0}])
def test_invalid_settings_are_refused(kind: type[Budget], wrong: dict[str, float]) -> None:
    with pytest.raises(HomingError):
        kind(**wrong)

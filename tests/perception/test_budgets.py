import pytest
import torch

from homing.errors import HomingError
from homing.perception import JND


def test_room_follows_the_papers_units(flower) -> None:
    view = flower.view()
    room = JND(alpha=3.0).room(view)
    from homing.perception import jnd_map

    jnd = jnd_map(view[None])[0, 0]
    for channel, (deviation, luma) in enumerate(((0.229, 0.299), (0.224, 0.587), (0.225, 0.114))):
        torch.testing.assert_close(room[channel], 3 * deviation * 0.072 / luma * jnd)


def test_grey_stays_grey(photos) -> None:
    from homing.photo import Photo

    view = Photo.load(photos / "camera.png").view()
    assert JND(alpha=3.0).room(view).shape == (1, *view.shape[1:])


@pytest.mark.parametrize("psnr", [35.0, 43.8, 50.0])
def test_psnr_is_first_met_at_a_typical_share_of_the_room(flower, psnr: float) -> None:
    room = JND(psnr=psnr).room(flower.view())
    error = (0.8 * room).square().mean()
    assert float(-10 * torch.log10(error)) == pytest.approx(psnr, abs=0.01)


@pytest.mark.parametrize("wrong", [{}, {"psnr": 43.8, "alpha": 3.0}, {"psnr": 5.0}, {"psnr": 100.0}, {"alpha": 0.0}])
def test_refuses_what_makes_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(HomingError):
        JND(**wrong)

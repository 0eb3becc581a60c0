import pytest
import torch

from homing.errors import HomingError
from homing.perception import BUDGETS, JND, Budget, EvenJND, Linf, PrintedJND, budget_named, jnd_map
from homing.perception.jnd import PRINTED
from homing.photo import Photo

every_kind = pytest.mark.parametrize("kind", BUDGETS.values(), ids=list(BUDGETS))


def test_room_follows_the_papers_units(flower) -> None:
    view = flower.view()
    room = JND(alpha=3.0).room(view)
    jnd = jnd_map(view[None])[0, 0]
    for channel, (deviation, luma) in enumerate(((0.229, 0.299), (0.224, 0.587), (0.225, 0.114))):
        torch.testing.assert_close(room[channel], 3 * deviation * 0.072 / luma * jnd)


def test_as_printed_there_is_room_as_the_printed_map_has_it(flower) -> None:
    view = flower.view()
    used, printed = (kind(alpha=3.0).room(view) for kind in (JND, PrintedJND))
    torch.testing.assert_close(printed, used * jnd_map(view[None], PRINTED)[0] / jnd_map(view[None])[0])


def test_even_channels_have_the_same_room_and_an_alpha_costs_what_it_costs_otherwise(flower) -> None:
    uneven, even = (kind(alpha=3.0).room(flower.view()) for kind in (JND, EvenJND))
    assert torch.equal(even[0], even[1]) and torch.equal(even[1], even[2])
    assert float(even.square().mean()) == pytest.approx(float(uneven.square().mean()), rel=1e-4)
    torch.testing.assert_close(even[0] / uneven[0], (even[0] / uneven[0]).mean().expand_as(even[0]))


def test_under_linf_all_may_move_by_as_many_steps(flower, photos) -> None:
    assert torch.allclose(255 * Linf(alpha=4.0).room(flower.view()), torch.tensor(4.0))
    grey = Linf(alpha=4.0).room(Photo.load(photos / "camera.png").view())
    assert torch.allclose(255 * grey, torch.tensor(4.0))


@every_kind
def test_grey_stays_grey(photos, kind: type[Budget]) -> None:
    red, green, blue = kind(alpha=3.0).room(Photo.load(photos / "camera.png").view())
    assert torch.equal(red, green) and torch.equal(green, blue)


@every_kind
def test_a_photo_without_room_is_not_moved_at_all_or_within_bounds(kind: type[Budget]) -> None:
    """The printed map leaves nothing just below mid-grey: no strength could meet a PSNR there."""
    room = kind(psnr=43.8).room(torch.full((3, 40, 40), 126.999999 / 255))
    assert room.isfinite().all()
    assert room.max() < 0.1


@every_kind
@pytest.mark.parametrize("psnr", [35.0, 43.8, 50.0])
def test_psnr_is_first_met_at_a_typical_share_of_the_room(flower, kind: type[Budget], psnr: float) -> None:
    room = kind(psnr=psnr).room(flower.view())
    error = (0.8 * room).square().mean()
    assert float(-10 * torch.log10(error)) == pytest.approx(psnr, abs=0.01)


def test_budgets_have_names_and_say_what_they_are() -> None:
    assert [str(kind(psnr=43.8)) for kind in BUDGETS.values()] == [
        "JND at 43.8 dB", "printed JND at 43.8 dB", "even JND at 43.8 dB", "L∞ at 43.8 dB",
    ]  # fmt: skip
    assert str(Linf(alpha=4)) == "L∞ with alpha 4"
    assert budget_named("linf") is Linf
    with pytest.raises(
        HomingError, match="unknown budget 'lnf'; did you mean 'linf'\\? Available: jnd, jnd-even, jnd-printed, linf"
    ):
        budget_named("lnf")


@every_kind
@pytest.mark.parametrize("wrong", [{}, {"psnr": 43.8, "alpha": 3.0}, {"psnr": 5.0}, {"psnr": 100.0}, {"alpha": 0.0}])
def test_refuses_what_makes_no_sense(kind: type[Budget], wrong: dict[str, float]) -> None:
    with pytest.raises(HomingError):
        kind(**wrong)

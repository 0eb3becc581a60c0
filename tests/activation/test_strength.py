"""The strength at which the written file has the target PSNR."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image
from tests.photo.photo_files import changed_photo
from torch import Tensor

from homing.activation import strength
from homing.activation.strength import ChangedPhoto, write_at_psnr
from homing.perception import measure
from homing.perception.quality import rms
from homing.photo import Photo


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many photos are written in each round."""
    written: list[int] = []
    write = strength.write_candidates

    def count(photos: list[ChangedPhoto], *more: object) -> object:
        written.append(len(photos))
        return write(photos, *more)

    monkeypatch.setattr(strength, "write_candidates", count)
    return written


def noise() -> Photo:
    """A photo of random pixels, 40 × 40, in PNG."""
    pixels = np.random.default_rng(0).integers(64, 192, (40, 40, 3), dtype=np.uint8)
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return Photo.decode(buffer.getvalue(), "noise")


def changed(photo: Photo, change: Tensor, times: float = 1.0) -> ChangedPhoto:
    """The photo with its change, whose RMS is said to be `times` as large as it is."""
    return ChangedPhoto(photo, photo.pixels(), change, times * float(rms(change)))


def varied(seed: int = 1) -> Tensor:
    return 0.01 * torch.randn(3, 40, 40, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("wanted", [43.8, 46.0, 52.0])
def test_a_nearly_uniform_change_meets_the_psnr(wanted: float, known: bool) -> None:
    """As with L∞: a weaker change is rounded to nothing, a stronger one changes every pixel by one level."""
    pixel_bound = 10 ** (-wanted / 20) / 0.8
    change = pixel_bound * torch.linspace(0.7, 0.95, 3 * 40 * 40).reshape(3, 40, 40)
    (file,) = write_at_psnr([changed(noise(), change, times=float(known))], wanted)
    assert wanted <= file.psnr < wanted + 4


def test_a_varied_change_takes_two_files(files: list[int]) -> None:
    """As with JND: rounding changes the result slightly, so the first guess is close."""
    (file,) = write_at_psnr([changed(noise(), varied())], 43.8)
    assert 43.8 <= file.psnr <= 43.9
    assert sum(files) <= 2


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_a_predicted_psnr_takes_one_file(flower: Photo, files: list[int], share: float) -> None:
    """Even if the first guess is wrong by nearly ten dB, or the change has few pixels."""
    image, random = flower.pixels(), torch.Generator().manual_seed(1)
    change = 0.02 * torch.randn(image.shape, generator=random) * (torch.rand(image.shape, generator=random) < share)
    (file,) = write_at_psnr([changed(flower, change, times=3.0)], 40.0)
    assert 40.0 <= file.psnr <= 40.1
    assert file.psnr == pytest.approx(measure(image, Photo.decode(file.data, "again").pixels()).psnr, abs=1e-3)
    assert files == [1]


def test_only_the_open_photos_are_written_again(files: list[int]) -> None:
    photos = [changed(noise(), varied(seed), times) for seed, times in ((1, 1.0), (2, 0.5), (3, 1.0))]
    together = write_at_psnr(photos, 43.8)
    assert files[0] == 3 and files[-1] < 3
    alone = [file for photo in photos for file in write_at_psnr([photo], 43.8)]
    assert [(file.data, file.strength) for file in together] == [(file.data, file.strength) for file in alone]


def test_without_a_target_the_change_is_written_as_it_is() -> None:
    photo = noise()
    (file,) = write_at_psnr([changed(photo, varied())], None)
    assert file.strength == 1.0
    assert file.data == changed_photo(photo, varied()).encode(quick=True)

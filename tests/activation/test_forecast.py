"""A forecast is what the file then has, and spares files."""

from __future__ import annotations

import dataclasses
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tests.photo.photo_files import exif, wide_gamut

from homing import _stacks
from homing.activation import RECIPES, activate, forecast
from homing.activation.forecast import Forecast, foretell
from homing.perception import JND, measure
from homing.photo import Photo

NEAR = 0.06  # dB; over a hundred photos of several samplings and qualities from 75 on, none was farther off than 0.05

FILES: dict[str, dict[str, Any]] = {
    "4:4:4": {"subsampling": 0, "quality": 90},
    "4:4:4, coarse": {"subsampling": 0, "quality": 75},
    "4:2:2": {"subsampling": 1, "quality": 85},
    "4:2:0": {"subsampling": 2, "quality": 92},
    "4:2:0, coarse": {"subsampling": 2, "quality": 75},
    "grey": {"mode": "L", "quality": 80},
    "progressive": {"progressive": True, "quality": 80},
    "turned": {"exif": exif(6), "quality": 88},
    "mirrored": {"exif": exif(5), "quality": 95, "subsampling": 0},
    "one table": {"qtables": [[7] * 64]},
    "three tables": {"qtables": [[5] * 64, [9] * 64, [12] * 64]},
}


def _photo(source: Photo, mode: str = "RGB", size: tuple[int, int] = (301, 205), **settings: Any) -> Photo:
    """A part of a photo, of odd size, as a JPEG file."""
    file = BytesIO()
    image = Image.fromarray(source.pixels).crop((60, 40, 60 + size[0], 40 + size[1]))
    image.convert(mode).save(file, "JPEG", **settings)
    return Photo.decode(file.getvalue(), "part.jpg")


def _change(view: torch.Tensor) -> torch.Tensor:
    """A soft one, as the engine's are, within the room that a budget gives."""
    pattern = torch.randn(1, 3, view.shape[1] // 3, view.shape[2] // 3)
    pattern = torch.nn.functional.interpolate(pattern, view.shape[1:], mode="bilinear")[0]
    return JND(psnr=43.8).room(view) * pattern


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_a_forecast_is_what_the_file_has(flower: Photo, name: str, finer: bool) -> None:
    photo = _photo(flower, **FILES[name])
    view = photo.view()
    change = _change(view)
    told = Forecast.of(photo, view, change, finer=finer)
    assert told is not None
    for strength in (0.6, 1.0, 1.8):
        written = Photo.decode(photo.moved(strength * change).encode(finer=finer), "written")
        assert foretell([told], [strength])[0] == pytest.approx(measure(view, written.view()).psnr, abs=NEAR)


@pytest.mark.parametrize("name", ["4:4:4", "4:2:2", "4:2:0", "grey", "turned"])
def test_photos_of_about_one_size_are_foretold_as_if_each_were_alone(
    flower: Photo, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU."""
    photos = [_photo(flower, size=size, **FILES[name]) for size in ((301, 205), (300, 240), (272, 208), (319, 193))]
    views = [photo.view() for photo in photos]
    told = [Forecast.of(photo, view, _change(view)) for photo, view in zip(photos, views, strict=True)]
    alone = [foretell([each], [0.8])[0] for each in told]
    monkeypatch.setattr(_stacks, "_at_once", lambda *_: 3)
    assert foretell(told, [0.8] * 4) == pytest.approx(alone, abs=0.03)


def test_what_is_clipped_is_foretold(flower: Photo) -> None:
    bright = dataclasses.replace(flower, pixels=(flower.pixels > 90).astype("uint8") * 255)
    photo = _photo(bright, quality=95, subsampling=0)
    view = photo.view()
    change = _change(view)
    told = Forecast.of(photo, view, change)
    assert told is not None
    written = Photo.decode(photo.moved(change).encode(), "written")
    assert foretell([told], [1.0])[0] == pytest.approx(measure(view, written.view()).psnr, abs=NEAR)


def test_a_forecast_in_bands_is_the_same(flower: Photo, monkeypatch: pytest.MonkeyPatch) -> None:
    view = flower.view()
    change = _change(view)
    told = Forecast.of(flower, view, change, finer=True)
    assert told is not None
    (whole,) = foretell([told], [1.0])
    monkeypatch.setattr(forecast, "_BAND", 50_000)
    assert foretell([told], [1.0])[0] == pytest.approx(whole, abs=1e-3)


def test_there_is_none_where_the_arithmetic_is_not_known(photos: Path, flower: Photo) -> None:
    wide = _photo(flower, icc_profile=wide_gamut())
    for photo, format in ((Photo.load(photos / "chelsea.png"), None), (flower, "png"), (wide, None)):
        view = photo.view()
        assert Forecast.of(photo, view, torch.zeros_like(view), format) is None


def test_a_photo_is_written_hardly_more_than_once(
    flower: Photo, photos: Path, extractor, codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    rocket = Photo.load(photos / "rocket.jpg")
    some = [_photo(each, size=(340, 300), **FILES[name]) for name in list(FILES)[:7] for each in (flower, rocket)]
    encode, written = Photo.encode, []
    monkeypatch.setattr(Photo, "encode", lambda *args, **more: written.append(args) or encode(*args, **more))
    made = activate(some, extractor=extractor, codebook=codebook, recipe=RECIPES["homing-fast"])
    plain = [each for each in made if each.state == "activated" and each.reason is None]
    assert len(plain) >= 10
    # A photo whose own tables wipe the gain out is written again, with finer ones.
    assert len(written) <= 1.25 * len(plain) + 5 * (len(made) - len(plain))
    for each in made:
        less = each.state == "unchanged" or "moved by" in (each.reason or "")
        assert each.quality.psnr >= 43.8 and (less or each.quality.psnr <= 43.9)

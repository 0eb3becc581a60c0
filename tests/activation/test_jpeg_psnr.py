"""The predicted PSNR equals that of the written file, so fewer files are written."""

from __future__ import annotations

import dataclasses
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tests.photo.photo_files import changed_photo, exif, wide_gamut

from homing import _tensors
from homing.activation import RECIPES, activate_batch, jpeg_psnr
from homing.activation.jpeg_psnr import JpegPsnr, predict_psnr
from homing.perception import JND, measure
from homing.photo import Photo

NEAR = 0.06  # dB; the largest error was 0.05 for a hundred photos of several subsamplings and qualities of 75 or more

FILES: dict[str, dict[str, Any]] = {
    "4:4:4": {"subsampling": 0, "quality": 90},
    "4:4:4, coarse": {"subsampling": 0, "quality": 75},
    "4:2:2": {"subsampling": 1, "quality": 85},
    "4:2:0": {"subsampling": 2, "quality": 92},
    "4:2:0, coarse": {"subsampling": 2, "quality": 75},
    "gray": {"mode": "L", "quality": 80},
    "progressive": {"progressive": True, "quality": 80},
    "turned": {"exif": exif(6), "quality": 88},
    "mirrored": {"exif": exif(5), "quality": 95, "subsampling": 0},
    "one table": {"qtables": [[7] * 64]},
    "three tables": {"qtables": [[5] * 64, [9] * 64, [12] * 64]},
}


def _photo(source: Photo, mode: str = "RGB", size: tuple[int, int] = (301, 205), **settings: Any) -> Photo:
    """A part of a photo, of odd size, as a JPEG file."""
    file = BytesIO()
    image = Image.fromarray(source.stored_pixels).crop((60, 40, 60 + size[0], 40 + size[1]))
    image.convert(mode).save(file, "JPEG", **settings)
    return Photo.decode(file.getvalue(), "part.jpg")


def _random_change(image: torch.Tensor) -> torch.Tensor:
    """A smooth random change, like those of the optimizer, within the bound of a budget."""
    pattern = torch.randn(1, 3, image.shape[1] // 3, image.shape[2] // 3)
    pattern = torch.nn.functional.interpolate(pattern, image.shape[1:], mode="bilinear")[0]
    return JND(psnr=43.8).pixel_bound(image) * pattern


def _predictor(photo: Photo, image: torch.Tensor, change: torch.Tensor, finer: bool = False) -> JpegPsnr:
    tables = photo.jpeg_tables(finer=finer)
    assert tables is not None
    return JpegPsnr(photo, image, change, tables)


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_the_predicted_psnr_is_that_of_the_file(flower: Photo, name: str, finer: bool) -> None:
    photo = _photo(flower, **FILES[name])
    image = photo.pixels()
    change = _random_change(image)
    predictor = _predictor(photo, image, change, finer=finer)
    for strength in (0.6, 1.0, 1.8):
        written = Photo.decode(changed_photo(photo, strength * change).encode(finer=finer), "written")
        assert predict_psnr([predictor], [strength])[0] == pytest.approx(
            measure(image, written.pixels()).psnr, abs=NEAR
        )


@pytest.mark.parametrize("name", ["4:4:4", "4:2:2", "4:2:0", "gray", "turned"])
def test_predictions_do_not_depend_on_the_batch(flower: Photo, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches as on a GPU."""
    photos = [_photo(flower, size=size, **FILES[name]) for size in ((301, 205), (300, 240), (272, 208), (319, 193))]
    images = [photo.pixels() for photo in photos]
    predictors = [_predictor(photo, image, _random_change(image)) for photo, image in zip(photos, images, strict=True)]
    alone = [predict_psnr([each], [0.8])[0] for each in predictors]
    monkeypatch.setattr(_tensors, "_stack_size", lambda *_: 3)
    assert predict_psnr(predictors, [0.8] * 4) == pytest.approx(alone, abs=0.03)


def test_clipping_is_predicted(flower: Photo) -> None:
    bright = dataclasses.replace(flower, stored_pixels=(flower.stored_pixels > 90).astype("uint8") * 255)
    photo = _photo(bright, quality=95, subsampling=0)
    image = photo.pixels()
    change = _random_change(image)
    predictor = _predictor(photo, image, change)
    written = Photo.decode(changed_photo(photo, change).encode(), "written")
    assert predict_psnr([predictor], [1.0])[0] == pytest.approx(measure(image, written.pixels()).psnr, abs=NEAR)


def test_predictions_do_not_depend_on_the_band_size(flower: Photo, monkeypatch: pytest.MonkeyPatch) -> None:
    image = flower.pixels()
    change = _random_change(image)
    predictor = _predictor(flower, image, change, finer=True)
    (whole,) = predict_psnr([predictor], [1.0])
    monkeypatch.setattr(jpeg_psnr, "_PIXELS_PER_BAND", 50_000)
    assert predict_psnr([predictor], [1.0])[0] == pytest.approx(whole, abs=1e-3)


def test_unknown_jpeg_arithmetic_gives_no_prediction(photos: Path, flower: Photo) -> None:
    wide = _photo(flower, icc_profile=wide_gamut())
    for photo, format in ((Photo.load(photos / "chelsea.png"), None), (flower, "png"), (wide, None)):
        assert photo.jpeg_tables(format) is None


def test_most_photos_are_written_once(
    flower: Photo, photos: Path, extractor, codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    rocket = Photo.load(photos / "rocket.jpg")
    coarse_and_fine = [
        _photo(each, size=(340, 300), **FILES[name]) for name in list(FILES)[:7] for each in (flower, rocket)
    ]
    encode, written = Photo.encode, []
    monkeypatch.setattr(Photo, "encode", lambda *args, **more: written.append(args) or encode(*args, **more))
    results = activate_batch(coarse_and_fine, extractor=extractor, codebook=codebook, recipe=RECIPES["homing-fast"])
    plain = [each for each in results if each.state == "activated" and each.reason is None]
    assert len(plain) >= 10
    # A photo whose own tables remove the gain is written again with finer ones.
    assert len(written) <= 1.25 * len(plain) + 5 * (len(results) - len(plain))
    for each in results:
        weaker = each.state == "unchanged" or "changed by" in (each.reason or "")
        assert each.quality.psnr >= 43.8 and (weaker or each.quality.psnr <= 43.9)

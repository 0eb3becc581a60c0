"""Photos in any form: accepted values, names, and values refused before any work."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as numpy_strategies
from PIL import Image
from scipy.io import wavfile
from tests.photo.photo_files import changed_photo

from homing._io.paths import Address
from homing.errors import PhotoError
from homing.photo import MemoryPhoto, Photo, as_photos
from homing.photo.inputs import ACCEPTED, is_one_photo, load_photo, load_pixels

SIZE = (40, 48)  # height, width


def array(seed: int = 0, shape: tuple[int, ...] = (*SIZE, 3), dtype: type = np.uint8) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def one(photo: Any) -> MemoryPhoto:
    (given,) = as_photos(photo)
    assert isinstance(given, MemoryPhoto)
    return given


def png(pixels: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


ONE: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda pixels: pixels,
    "PIL image": Image.fromarray,
    "bytes": png,
    "bytearray": lambda pixels: bytearray(png(pixels)),
    "memoryview": lambda pixels: memoryview(png(pixels)),
    "file object": lambda pixels: BytesIO(png(pixels)),
    "uint8 tensor": lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1),
    "float tensor": lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1) / 255,
    "double tensor": lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1).double() / 255,
    "tensor with a gradient": lambda pixels: (torch.from_numpy(pixels).permute(2, 0, 1) / 255).requires_grad_(),
    "Photo": lambda pixels: Photo.decode(png(pixels), "noise.png"),
    "columns": lambda pixels: np.asfortranarray(pixels),
}


@pytest.mark.parametrize("make", ONE.values(), ids=ONE.keys())
def test_all_forms_of_a_photo_have_the_same_pixels(make: Callable[[np.ndarray], Any]) -> None:
    pixels = array()
    photo = make(pixels)
    assert is_one_photo(photo)
    wanted = torch.from_numpy(pixels).permute(2, 0, 1) / 255
    given = one(photo)
    torch.testing.assert_close(given.pixels(), wanted)
    np.testing.assert_array_equal(load_photo(given).stored_pixels, pixels)
    assert given.sha256 == hashlib.sha256(given.data).hexdigest()


@settings(max_examples=30, deadline=None)
@given(
    numpy_strategies.arrays(
        st.sampled_from([np.uint8, np.uint16]),
        st.one_of(
            st.tuples(st.integers(32, 40), st.integers(32, 40)),
            st.tuples(st.integers(32, 40), st.integers(32, 40), st.just(3)),
        ),
    )
)
def test_array_round_trips_through_its_file(pixels: np.ndarray) -> None:
    given = one(pixels)
    stored = Photo.decode(given.data, given.name).stored_pixels
    assert stored.dtype == pixels.dtype
    np.testing.assert_array_equal(stored, pixels.reshape(stored.shape))


@settings(max_examples=30, deadline=None)
@given(numpy_strategies.arrays(np.float32, (3, 32, 33), elements=st.floats(0, 1, width=32)))
def test_a_float_tensor_keeps_its_pixels_and_its_file_has_8_bits(values: np.ndarray) -> None:
    given = one(torch.from_numpy(values))
    np.testing.assert_array_equal(given.pixels().numpy(), values)
    kept = Photo.decode(given.data, given.name).pixels()
    assert (kept - torch.from_numpy(values)).abs().max() <= 0.5 / 255 + 1e-6


def test_what_is_changed_afterwards_does_not_change_the_photo() -> None:
    for photo in (array(), torch.rand(3, *SIZE), torch.from_numpy(array()).permute(2, 0, 1), bytearray(png(array()))):
        given = one(photo)
        before = given.pixels().clone()
        photo[:] = photo[:][::-1] if isinstance(photo, np.ndarray | bytearray) else 0
        torch.testing.assert_close(given.pixels(), before)


def test_gray_photos_have_three_channels() -> None:
    for gray in (array(shape=SIZE), torch.rand(1, *SIZE), Image.fromarray(array(shape=SIZE))):
        pixels = one(gray).pixels()
        assert pixels.shape == (3, *SIZE)
        assert torch.equal(pixels[0], pixels[1]) and torch.equal(pixels[0], pixels[2])


def test_a_pil_image_keeps_its_orientation_profile_and_transparency(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(array()).save(tmp_path / "turned.jpg", exif=exif, icc_profile=None, quality=100)
    with Image.open(tmp_path / "turned.jpg") as image:
        given = one(image)
    assert given.name == "turned.png"
    torch.testing.assert_close(given.pixels(), Photo.load(tmp_path / "turned.jpg").pixels())
    transparent = Image.fromarray(array(shape=(*SIZE, 4)), "RGBA")
    assert load_photo(one(transparent)).alpha is not None


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_modes_of_pil_images(mode: str) -> None:
    image = Image.fromarray(array()).convert(mode)
    file = BytesIO()
    image.save(file, "PNG")
    torch.testing.assert_close(one(image).pixels(), Photo.decode(file.getvalue(), "x.png").pixels())


def test_paths_and_addresses_are_returned_as_locations(tmp_path: Path) -> None:
    photos = ["beach.jpg", tmp_path / "a.png", Address("s3://bucket/b.jpg"), "s3://bucket/c.jpg", "file:///d.jpg"]
    wanted = [Path("beach.jpg"), tmp_path / "a.png", Address("s3://bucket/b.jpg"), Address("s3://bucket/c.jpg")]
    wanted.append(Path("/d.jpg"))
    assert as_photos(photos) == as_photos(tuple(photos)) == as_photos(iter(photos)) == wanted


def test_names_of_photos_in_memory(tmp_path: Path) -> None:
    data = png(array())
    (tmp_path / "beach.png").write_bytes(data)
    with (tmp_path / "beach.png").open("rb") as file:
        assert one(file).name == "beach.png"
    with Image.open(tmp_path / "beach.png") as image:
        assert one(image).name == "beach.png"
    assert one(Photo.load(tmp_path / "beach.png")).name == "beach.png"
    digest = hashlib.sha256(data).hexdigest()
    assert one(data).name == one(BytesIO(data)).name == f"{digest[:16]}.png"
    jpeg = BytesIO()
    Image.fromarray(array()).save(jpeg, "JPEG")
    assert one(jpeg.getvalue()).name.endswith(".jpg")
    named = as_photos({"one.png": array(), "two.jpeg": jpeg.getvalue(), "three.png": Image.fromarray(array())})
    assert [photo.name for photo in named] == ["one.png", "two.jpeg", "three.png"]


def test_a_batch_of_tensors_is_several_photos() -> None:
    batch = torch.rand(3, 3, *SIZE)
    assert not is_one_photo(batch)
    for photo, wanted in zip(as_photos(batch), batch, strict=True):
        torch.testing.assert_close(load_pixels(photo), wanted)


def test_a_photo_with_changed_pixels_is_encoded_again() -> None:
    photo = Photo.decode(png(array()), "noise.png")
    changed = changed_photo(photo, torch.full((3, *SIZE), 0.1))
    assert one(photo).data == photo.data
    torch.testing.assert_close(one(changed).pixels(), changed.pixels())


class Unreadable(BytesIO):
    def read(self, *_: Any) -> bytes:
        raise OSError(5, "Input/output error")


class NeedsArguments:
    def read(self, name: str) -> bytes:
        return name.encode()


def closed(file: Any) -> Any:
    file.close()
    return file


def exhausted(file: Any) -> Any:
    file.read()
    return file


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "None": (lambda: None, "got None"),
    "a number": (lambda: 7, "type int"),
    "an object": (object, "type object"),
    "a module with a function read": (lambda: wavfile, "type module; a photo is a path"),
    "an object whose read needs arguments": (lambda: NeedsArguments(), "type NeedsArguments; a photo is a path"),
    "the class of a file object": (lambda: BytesIO, "type type; a photo is a path"),
    "an empty list": (list, "no photos were given"),
    "an empty tuple": (tuple, "no photos were given"),
    "an empty dict": (dict, "no photos were given"),
    "an empty batch": (lambda: torch.rand(0, 3, *SIZE), "no photos were given"),
    "a list within a list": (lambda: [[array()]], "a list within a list"),
    "a list with None": (lambda: [array(), None], "got None"),
    "a list of numbers": (lambda: [1, 2, 3], "type int"),
    "four channels": (lambda: array(shape=(*SIZE, 4)), r"shape \(40, 48, 4\) and type uint8; drop its alpha channel"),
    "channels first": (lambda: array(shape=(3, *SIZE)), r"shape \(3, 40, 48\)"),
    "one dimension": (lambda: array(shape=(100,)), r"shape \(100,\)"),
    "a batch of arrays": (lambda: array(shape=(2, *SIZE, 3)), r"shape \(2, 40, 48, 3\)"),
    "an array of floats": (lambda: array() / 255, "float64"),
    "an array of booleans": (lambda: array() > 7, "bool"),
    "a complex array": (lambda: array().astype(complex), "complex128"),
    "an array of objects": (lambda: array().astype(object), "object"),
    "an array of signed numbers": (lambda: array().astype(np.int16), "int16"),
    "an empty array": (lambda: np.zeros((0, 0, 3), np.uint8), "too small"),
    "a small array": (lambda: array(shape=(31, 100, 3)), "100×31, at least 32×32"),
    "a small tensor": (lambda: torch.rand(3, 31, 100), "100×31, at least 32×32"),
    "a tensor with the channels last": (lambda: torch.rand(*SIZE, 3), r"shape \(40, 48, 3\)"),
    "a tensor of two dimensions": (lambda: torch.rand(*SIZE), r"shape \(40, 48\)"),
    "a tensor of five dimensions": (lambda: torch.rand(1, 1, 3, *SIZE), r"shape \(1, 1, 3, 40, 48\)"),
    "a tensor beyond 1": (lambda: torch.rand(3, *SIZE) * 255, r"floats in \[0, 1\] are accepted"),
    "a tensor below 0": (lambda: torch.rand(3, *SIZE) - 0.5, r"floats in \[0, 1\] are accepted"),
    "a tensor with NaN": (lambda: torch.full((3, *SIZE), torch.nan), r"floats in \[0, 1\] are accepted"),
    "a tensor with one NaN": (lambda: torch.rand(3, *SIZE).index_fill_(1, torch.tensor([3]), torch.nan), "nan"),
    "an infinite tensor": (lambda: torch.full((3, *SIZE), torch.inf), r"floats in \[0, 1\] are accepted"),
    "a tensor of int64": (lambda: torch.ones(3, *SIZE, dtype=torch.int64), "int64"),
    "a complex tensor": (lambda: torch.ones(3, *SIZE, dtype=torch.complex64), "complex64"),
    "a meta tensor": (lambda: torch.rand(3, *SIZE, device="meta"), "tensor of shape"),
    "a sparse tensor": (lambda: torch.rand(3, *SIZE).to_sparse(), "tensor of shape"),
    "a closed file": (lambda: closed(BytesIO(png(array()))), "is closed"),
    "a file that was read": (lambda: exhausted(BytesIO(png(array()))), r"seek\(0\)"),
    "a text file": (lambda: StringIO("hello"), "binary mode"),
    "a file that fails": (Unreadable, "cannot be read"),
    "text bytes": (lambda: b"no photo", "not a photo"),
    "no bytes": (lambda: b"", "empty file"),
    "an empty path": (lambda: "", "cannot be the name of a file"),
    "a path with a zero": (lambda: "a\0b.jpg", "cannot be the name of a file"),
    "a path of bytes": (lambda: [b"beach.jpg"], "not a photo"),
    "a closed PIL image": (lambda: closed(Image.open(BytesIO(png(array())))), "cannot be read"),
    "a CMYK image": (lambda: Image.fromarray(array()).convert("CMYK"), "mode CMYK"),
    "an image of floats": (lambda: Image.fromarray(array(shape=SIZE)).convert("F"), "mode F"),
    "a damaged image": (lambda: Image.open(BytesIO(png(array())[:900])), "cannot be read"),
    "a name with a folder": (lambda: {"a/b.png": array()}, "cannot be the name of a file"),
    "a name that leads out": (lambda: {"..": array()}, "cannot be the name of a file"),
    "a hidden name": (lambda: {".hidden.png": array()}, "cannot be the name of a file"),
    "a long name": (lambda: {"a" * 300 + ".png": array()}, "cannot be the name of a file"),
    "an empty name": (lambda: {"": array()}, "cannot be the name of a file"),
    "a name that is none": (lambda: {3: array()}, "names of photos must be strings"),
    "a name of another format": (lambda: {"beach.jpg": array()}, "name it 'beach.png'"),
    "a name for a path": (lambda: {"beach.jpg": "sea.jpg"}, "a file keeps its own name"),
    "a list in a dict": (lambda: {"beach.png": [array()]}, "a list within a list"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "line"), HOSTILE.values(), ids=HOSTILE.keys())
def test_invalid_values_are_refused_with_a_one_line_error(make: Callable[[], Any], line: str) -> None:
    with pytest.raises(PhotoError, match=line) as refused:
        as_photos(make())
    assert "\n" not in str(refused.value)


def test_errors_list_the_accepted_values() -> None:
    for wrong in (None, [3], array().astype(float), torch.rand(2, *SIZE)):
        with pytest.raises(PhotoError) as refused:
            as_photos(wrong)
        assert str(refused.value).endswith(ACCEPTED)


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.integers(), st.floats(), st.booleans(), st.complex_numbers()))
def test_arbitrary_values_raise_photo_error(value: object) -> None:
    with pytest.raises(PhotoError):
        as_photos(value)
    with pytest.raises(PhotoError):
        as_photos([array(), value])

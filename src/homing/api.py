"""Functions for single photos and for tensors, without a collection."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, overload

import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._io.paths import Location
from homing.activation import Activation, Recipe, activate_batch, resolve_recipe
from homing.activation.optimize import optimize
from homing.activation.pipeline import ReleasePipeline, batch_size_for
from homing.codebooks import Codebook, CodebookLike
from homing.errors import HomingError, PhotoError
from homing.extractors import Extractor, ExtractorLike
from homing.objectives import objective_for
from homing.perception import Quality, measure as measure_pixels
from homing.perception.quality import rms
from homing.photo import MemoryPhoto, Photo, PhotoLike, PhotosLike, as_photo, as_photos
from homing.photo._decode import check_size
from homing.photo.inputs import check_unit_range, is_one_photo, load_photo, load_pixels

_DEFAULT = "homing-1"
_BISECTIONS = 30

available_codebooks = codebooks.available
available_extractors = extractors.available
register_extractor = extractors.register


def load_extractor(name: str | os.PathLike[str] = _DEFAULT, device: torch.device | str | None = None) -> Extractor:
    """The extractor of this name or in this file, on a device: by default a GPU if there is one."""
    return extractors.load(name, device)


def load_codebook(name: str | os.PathLike[str] = _DEFAULT) -> Codebook:
    """The codebook of this name or in this file."""
    return codebooks.load(name)


@overload
def activate(
    photos: list[Any] | tuple[Any, ...] | Generator[Any, Any, Any] | Mapping[str, PhotoLike],
    *,
    recipe: str | Recipe = ...,
    psnr: float | None = ...,
    extractor: ExtractorLike | None = ...,
    codebook: CodebookLike | None = ...,
    format: str | None = ...,
    graphics: bool = ...,
) -> list[Activation | PhotoError]: ...


@overload
def activate(
    photos: PhotoLike,
    *,
    recipe: str | Recipe = ...,
    psnr: float | None = ...,
    extractor: ExtractorLike | None = ...,
    codebook: CodebookLike | None = ...,
    format: str | None = ...,
    graphics: bool = ...,
) -> Activation: ...


def activate(
    photos: PhotosLike,
    *,
    recipe: str | Recipe = "homing",
    psnr: float | None = None,
    extractor: ExtractorLike | None = None,
    codebook: CodebookLike | None = None,
    format: str | None = None,
    graphics: bool = False,
) -> Activation | list[Activation | PhotoError]:
    """Activate a photo for a codebook, without a collection: the file to release, and its measured quality.

    Several photos give a list, in which a photo that cannot be read or written has its error. A tensor (B, 3, H, W) is
    several photos; as its type is that of one, pass `list(tensor)` to type checkers. Recipe, extractor and
    codebook are names, files or values; by default those that come with homing. `psnr`, in dB, replaces that of the
    recipe's budget: a higher value changes the photo less. `format` writes another file format.
    Graphics, such as logos and screenshots of text, are released unchanged unless `graphics` is true.
    """
    given, chosen = as_photos(photos), resolve_recipe(recipe, psnr=psnr)
    net, book = _network_and_codebook(extractor, codebook)
    work = partial(activate_batch, extractor=net, codebook=book, recipe=chosen, format=format, graphics=graphics)
    pipeline = ReleasePipeline(partial(_load, given), work, list, batch_size_for(net.device))
    by_position: dict[int, Activation | PhotoError] = dict(pipeline.run(range(len(given))))
    results = [by_position[position] for position in range(len(given))]
    if not is_one_photo(photos):
        return results
    (result,) = results
    if isinstance(result, PhotoError):
        raise result
    return result


def describe(photos: PhotosLike, extractor: ExtractorLike | None = None) -> Tensor:
    """Descriptors (B, D) of photos, of unit norm, on the CPU; a single photo gives (1, D).

    Call the extractor itself where a gradient is to reach the pixels.
    """
    given, net = as_photos(photos), _network(extractor)
    return extractors.describe_images(net, [net.resize(load_pixels(photo)) for photo in given])


def measure(original: PhotoLike, released: PhotoLike) -> Quality:
    """PSNR, SSIM and L∞ between two photos of the same size; tensors are not rounded to 8 bits."""
    return measure_pixels(load_pixels(as_photo(original)), load_pixels(as_photo(released)))


@overload
def activate_images(
    images: Tensor,
    extractor: ExtractorLike | None = ...,
    codebook: CodebookLike | None = ...,
    *,
    recipe: str | Recipe = ...,
) -> Tensor: ...


@overload
def activate_images(
    images: Sequence[Tensor],
    extractor: ExtractorLike | None = ...,
    codebook: CodebookLike | None = ...,
    *,
    recipe: str | Recipe = ...,
) -> list[Tensor]: ...


def activate_images(
    images: Tensor | Sequence[Tensor],
    extractor: ExtractorLike | None = None,
    codebook: CodebookLike | None = None,
    *,
    recipe: str | Recipe = "homing",
) -> Tensor | list[Tensor]:
    """Activated images: (B, 3, H, W) in [0, 1] in and out, or a list of (3, H, W) of any sizes.

    Each image has the PSNR of the recipe's budget, in floats: rounding to 8 bits or writing a lossy file costs some of
    the change. Nothing is checked that `activate` checks of a file, such as whether the change survives being written.
    """
    given, chosen = _checked_images(images), resolve_recipe(recipe)
    net, book = _network_and_codebook(extractor, codebook)
    book.check(net)
    on_device = [image.detach().to(net.device, torch.float32) for image in given]
    originals = extractors.describe_images(net, on_device)
    objective = objective_for(book, originals.to(net.device), chosen.objective)
    changes = optimize(on_device, extractor=net, objective=objective, recipe=chosen)
    activated = [
        _at_psnr(image, change, chosen.budget.psnr).to(original)
        for image, change, original in zip(on_device, changes, given, strict=True)
    ]
    return torch.stack(activated) if isinstance(images, Tensor) else activated


def _at_psnr(image: Tensor, change: Tensor, psnr: float | None) -> Tensor:
    """An image with its change at the strength that has this PSNR, if one is asked for."""
    change_rms = float(rms(change))
    if psnr is None or not change_rms:
        return (image + change).clamp(0, 1)
    wanted = 10 ** (-psnr / 20)
    low, high = wanted / change_rms, 2 * wanted / change_rms  # what is clipped may be made up for, twice at most
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        reached = float(rms((image + middle * change).clamp(0, 1) - image))
        low, high = (low, middle) if reached > wanted else (middle, high)
    return (image + low * change).clamp(0, 1)


def _checked_images(images: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """Images of which every one is (3, H, W) floats in [0, 1]."""
    if not isinstance(images, Iterable) or (isinstance(images, Tensor) and images.ndim != 4):
        got = f"shape {tuple(images.shape)}" if isinstance(images, Tensor) else repr(images)
        raise HomingError(f"images are a tensor (B, 3, H, W) or a list of (3, H, W) of floats, got {got}")
    given = list(images)
    if not given:
        raise HomingError("no images were given")
    for image in given:
        if not isinstance(image, Tensor) or image.ndim != 3 or len(image) != 3 or not _has_float_values(image):
            got = type(image).__name__
            if isinstance(image, Tensor):
                got = f"{tuple(image.shape)} of {image.dtype}" + ", without values (meta)" * image.is_meta
            raise HomingError(f"each image is a tensor (3, H, W) of floats, got {got}")
        check_size(image.shape[2], image.shape[1], "tensor")
        check_unit_range(image)
    return given


def _has_float_values(image: Tensor) -> bool:
    return image.is_floating_point() and image.layout == torch.strided and not image.is_meta


def _load(photos: Sequence[Location | MemoryPhoto], positions: Sequence[int]) -> list[tuple[int, Photo | PhotoError]]:
    def load(position: int) -> Photo | PhotoError:
        try:
            return load_photo(photos[position])
        except PhotoError as error:
            return error

    return [(position, load(position)) for position in positions]


def _network_and_codebook(extractor: ExtractorLike | None, codebook: CodebookLike | None) -> tuple[Extractor, Codebook]:
    """What is asked for; where only a codebook is, with the extractor it was trained for."""
    book = _default_codebook() if codebook is None else codebooks.load(codebook)
    if extractor is None and book.extractor != _DEFAULT:
        return extractors.load(book.extractor), book
    net = _network(extractor)
    if codebook is None and net.fingerprint != book.extractor_fingerprint:
        hint = f", such as codebook='{net.name}'" if net.name in codebooks.available() else ""
        raise HomingError(f"no codebook was given for extractor '{net.name}'; pass codebook={hint}")
    return net, book


def _network(extractor: ExtractorLike | None) -> Extractor:
    return _default_extractor() if extractor is None else extractors.load(extractor)


_default_extractor = cache(partial(extractors.load, _DEFAULT))
_default_codebook = cache(partial(codebooks.load, _DEFAULT))

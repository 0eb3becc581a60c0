"""POST /v1/compare: compare two photos."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from fastapi import APIRouter, Request
from PIL import Image
from torch import Tensor

from homing.alignment import overlay_photo
from homing.collection.results import format_probability
from homing.imaging import embed, make_thumbnail
from homing.perception import measure
from homing.photo import Photo
from homing.service.auth import Searcher
from homing.service.openapi import TWO_PHOTOS, multipart_body
from homing.service.problems import problem_responses
from homing.service.schemas import Comparison, Quality, to_quality
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import Upload, check_upload, read_form

router = APIRouter()


@dataclass(frozen=True)
class _ComparedPhoto:
    """Network input and thumbnail of a photo; full-size pixels are decoded again when needed, to save memory."""

    upload: Upload
    shape: torch.Size
    network_input: Tensor
    picture: Image.Image

    def pixels(self) -> Tensor:
        """Decode the photo at full size."""
        return Photo.decode(self.upload.data, self.upload.name).pixels()


@dataclass(frozen=True)
class _PixelComparison:
    """Quality, if both photos have the same size, and pictures as data URLs."""

    quality: Quality | None
    pictures: dict[str, str]


@router.post(
    "/v1/compare",
    summary="Compare two photos",
    responses=problem_responses(400, 408, 413, 415),
    openapi_extra=multipart_body(TWO_PHOTOS),
)
async def compare(request: Request, _: Searcher, service: ServiceDep, reservation: UploadSlot) -> Comparison:
    """Distance and false-match probability of two photos and, if they can be aligned, an overlay of the two."""
    form = await read_form(request, service.limits, reservation)
    first, second = form.photo("first"), form.photo("second")
    one, other = [await _decode_photo(service, each) for each in (first, second)]
    descriptors = await asyncio.wrap_future(
        service.batcher.submit(torch.stack([one.network_input, other.network_input]))
    )
    distance = float(torch.dist(descriptors[0], descriptors[1]))
    # As if the second photo were the only reference.
    pairs = service.collection.codebook.null_distribution
    false_match_probability = float(pairs.descriptor.false_match_probability(np.array([distance]), 1)[0])
    compared = await service.executors.report(first.name, partial(_compare_pixels, one, other))
    return Comparison(
        same_size=compared.quality is not None,
        quality=compared.quality,
        distance=distance,
        false_match_probability=false_match_probability,
        false_match_text=format_probability(false_match_probability),
        aligned="overlay" in compared.pictures,
        pictures=compared.pictures,
    )


async def _decode_photo(service: Service, upload: Upload) -> _ComparedPhoto:
    def decoded() -> _ComparedPhoto:
        pixels = Photo.decode(upload.data, upload.name).pixels()
        return _ComparedPhoto(upload, pixels.shape, service.collection.extractor.resize(pixels), make_thumbnail(pixels))

    pixel_count = await service.executors.lookup(partial(check_upload, upload, service.limits))
    return await service.executors.decode(upload.name, pixel_count, decoded)


def _compare_pixels(first: _ComparedPhoto, second: _ComparedPhoto) -> _PixelComparison:
    quality = None
    if first.shape == second.shape:
        measured = measure(first.pixels(), second.pixels())
        quality = to_quality(measured.psnr, measured.ssim, measured.linf)
    overlay = overlay_photo(first.picture, second.picture)
    pictures = {"first": first.picture, "second": second.picture, **(vars(overlay) if overlay else {})}
    return _PixelComparison(quality, {name: embed(picture) for name, picture in pictures.items()})

"""POST /v1/compare: compare two photos."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from fastapi import APIRouter, Request
from PIL import Image
from torch import Tensor

from homing.collection.results import format_probability
from homing.imaging import embed, make_thumbnail, overlay_photo
from homing.perception import measure
from homing.service.auth import Searcher
from homing.service.problems import problem_responses
from homing.service.schemas import Comparison, Quality
from homing.service.state import Service, ServiceDep, UploadSlot
from homing.service.uploads import TWO_PHOTOS, PhotoFile, multipart_body, read_form

router = APIRouter()


class _ComparedPhoto(NamedTuple):
    """What a comparison needs of a photo; full-size pixels are decoded again when needed, to save memory."""

    file: PhotoFile
    shape: torch.Size
    network_input: Tensor
    picture: Image.Image


@router.post(
    "/v1/compare",
    summary="Compare two photos",
    responses=problem_responses(400, 408, 413, 415),
    openapi_extra=multipart_body(TWO_PHOTOS),
)
async def compare(request: Request, _: Searcher, service: ServiceDep, reservation: UploadSlot) -> Comparison:
    """Distance and false-match probability of two photos and, if they can be aligned, an overlay of the two."""
    form = await read_form(request, service.limits, reservation)
    files = form.photo("first"), form.photo("second")
    first, second = [await _decode(service, file) for file in files]
    descriptors = await service.describe(torch.stack([first.network_input, second.network_input]))
    distance = float(torch.dist(descriptors[0], descriptors[1]))
    # As if the second photo were the only reference.
    pairs = service.collection.codebook.null_distribution
    false_match_probability = float(pairs.descriptor.false_match_probability(np.array([distance]), 1)[0])
    quality, pictures = await service.executors.run(
        "report", partial(_compare_pixels, first, second), photo=first.file.name
    )
    return Comparison(
        same_size=quality is not None,
        quality=quality,
        distance=distance,
        false_match_probability=false_match_probability,
        false_match_text=format_probability(false_match_probability),
        aligned="overlay" in pictures,
        pictures=pictures,
    )


async def _decode(service: Service, file: PhotoFile) -> _ComparedPhoto:
    def decode() -> _ComparedPhoto:
        pixels = file.photo().pixels()
        return _ComparedPhoto(file, pixels.shape, service.collection.extractor.resize(pixels), make_thumbnail(pixels))

    await service.check(file)
    return await service.executors.decode(file, decode)


def _compare_pixels(first: _ComparedPhoto, second: _ComparedPhoto) -> tuple[Quality | None, dict[str, str]]:
    """The quality, if both photos have the same size, and pictures as data URLs."""
    quality = None
    if first.shape == second.shape:
        quality = Quality.measured(measure(first.file.photo().pixels(), second.file.photo().pixels()))
    overlay = overlay_photo(first.picture, second.picture)
    pictures = {"first": first.picture, "second": second.picture, **(vars(overlay) if overlay else {})}
    return quality, {name: embed(picture) for name, picture in pictures.items()}

"""POST /v1/compare: two photos beside each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from fastapi import APIRouter, Request
from PIL import Image
from torch import Tensor

from homing.collection.outcome import in_words
from homing.evaluation.results.page import embed
from homing.evaluation.side_by_side import laid_over, small_picture
from homing.perception import measure
from homing.photo import Photo
from homing.service.access import Searcher
from homing.service.answers import Comparison, Quality
from homing.service.bodies import TWO_PHOTOS, takes
from homing.service.problems import responses
from homing.service.showing import quality_of
from homing.service.state import Here, Room, Service
from homing.service.uploads import Upload, examine, read_form

router = APIRouter()


@dataclass(frozen=True)
class _Seen:
    """A photo as the network sees it, and as it is shown; at full size those that wait would fill the memory."""

    upload: Upload
    shape: torch.Size
    square: Tensor
    picture: Image.Image

    def view(self) -> Tensor:
        """It at full size, decoded again."""
        return Photo.decode(self.upload.data, self.upload.name).view()


@dataclass(frozen=True)
class _Beside:
    """How two photos differ, where they have one size, and pictures of them as addresses."""

    quality: Quality | None
    pictures: dict[str, str]


@router.post(
    "/v1/compare",
    summary="Compare two photos",
    responses=responses(400, 408, 413, 415),
    openapi_extra=takes(TWO_PHOTOS),
)
async def compare(request: Request, _: Searcher, service: Here, held: Room) -> Comparison:
    """How far two photos lie apart and, where one shows a part of the other, the two laid over each other."""
    form = await read_form(request, service.limits, held)
    first, second = form.photo("first"), form.photo("second")
    one, other = [await _seen(service, each) for each in (first, second)]
    descriptors = await asyncio.wrap_future(service.batcher.submit(torch.stack([one.square, other.square])))
    distance = float(torch.dist(descriptors[0], descriptors[1]))
    # As if the second were the only reference there is.
    pairs = service.collection.codebook.unrelated
    chance = float((pairs.descriptor or pairs.code).chance(np.array([distance]), 1)[0])
    beside = await service.lanes.report(first.name, partial(_beside, one, other))
    return Comparison(
        same_size=beside.quality is not None,
        quality=beside.quality,
        distance=distance,
        chance=chance,
        chance_in_words=in_words(chance),
        aligned="overlay" in beside.pictures,
        pictures=beside.pictures,
    )


async def _seen(service: Service, upload: Upload) -> _Seen:
    def decoded() -> _Seen:
        view = Photo.decode(upload.data, upload.name).view()
        return _Seen(upload, view.shape, service.collection.extractor.resize(view), small_picture(view))

    pixels = await service.lanes.look(partial(examine, upload, service.limits))
    return await service.lanes.decode(upload.name, pixels, decoded)


def _beside(first: _Seen, second: _Seen) -> _Beside:
    quality = None
    if first.shape == second.shape:
        measured = measure(first.view(), second.view())
        quality = quality_of(measured.psnr, measured.ssim, measured.linf)
    laid = laid_over(first.picture, second.picture)
    pictures = {"first": first.picture, "second": second.picture, **(vars(laid) if laid else {})}
    return _Beside(quality, {name: embed(picture) for name, picture in pictures.items()})

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
from homing.perception import Quality, measure
from homing.photo import Photo
from homing.service.access import Searcher
from homing.service.answers import Comparison
from homing.service.forms import TWO_PHOTOS, takes
from homing.service.problems import responses
from homing.service.showing import quality_of
from homing.service.state import Here, Room, Service
from homing.service.uploads import Upload, examine, read_form

router = APIRouter()
_LAID = {
    "the match, and where the query lies in it": "framed",
    "the same part of it": "overlay",
    "what differs": "difference",
}


@dataclass(frozen=True)
class _Seen:
    same_size: bool
    quality: Quality | None
    squares: Tensor
    pictures: list[Image.Image]


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
    pixels = [await service.lanes.look(partial(examine, each, service.limits)) for each in (first, second)]
    seen = await service.lanes.decode(max(pixels), partial(_seen, service, first, second))
    descriptors = await asyncio.wrap_future(service.batcher.submit(seen.squares))
    distance = float(torch.dist(descriptors[0], descriptors[1]))
    # As if the second were the only reference there is.
    pairs = service.collection.codebook.unrelated
    chance = float((pairs.descriptor or pairs.code).chance(np.array([distance]), 1)[0])
    laid, remark = await service.lanes.report(partial(laid_over, *seen.pictures))
    first_shown, second_shown = map(embed, seen.pictures)
    shown = {_LAID[name]: embed(picture) for name, picture in laid.items()} if not remark else {}
    quality = seen.quality
    return Comparison(
        same_size=seen.same_size,
        quality=None if quality is None else quality_of(quality.psnr, quality.ssim, quality.linf),
        distance=distance,
        chance=chance,
        chance_in_words=in_words(chance),
        aligned=not remark,
        pictures={"first": first_shown, "second": second_shown, **shown},
    )


def _seen(service: Service, first: Upload, second: Upload) -> _Seen:
    views = [Photo.decode(each.data, each.name).view() for each in (first, second)]
    same_size = views[0].shape == views[1].shape
    return _Seen(
        same_size=same_size,
        quality=measure(*views) if same_size else None,
        squares=torch.stack([service.collection.extractor.resize(view) for view in views]),
        pictures=[small_picture(view) for view in views],
    )

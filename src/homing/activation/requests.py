"""Requests of the release check, each answered for many photos at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from homing._io.device import to_device
from homing._io.parallel import prefetch_map
from homing.activation.coroutines import BatchedRequest
from homing.activation.jpeg_psnr import JpegPsnr, predict_psnr
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.objectives import Objective
from homing.perception import Quality
from homing.perception.quality import measure_batch, psnr_batch
from homing.photo import Photo, apply_changes


@dataclass(frozen=True)
class PredictPsnr(BatchedRequest):
    """The PSNR, in dB, of the file whose change is scaled by `strength`."""

    predictor: JpegPsnr
    strength: float

    @classmethod
    def answer(cls, requests: Sequence[PredictPsnr]) -> list[float]:
        """Predict the PSNR with libjpeg's arithmetic."""
        return predict_psnr([each.predictor for each in requests], [each.strength for each in requests])


class Candidate(NamedTuple):
    """One way to write a photo, measured on its bytes."""

    data: bytes
    decoded: Tensor
    """The image decoded from `data`."""
    strength: float
    finer: bool
    psnr: float


@dataclass(frozen=True)
class WriteCandidate(BatchedRequest):
    """The Candidate of a photo (with this image) whose change is scaled by `strength`.

    `finer` and `quick` as in `Photo.encode`.
    """

    photo: Photo
    image: Tensor
    change: Tensor
    format: str | None
    finer: bool
    strength: float
    quick: bool = True

    @classmethod
    def answer(cls, requests: Sequence[WriteCandidate]) -> list[Candidate | PhotoError]:
        """Write the files, decode them again, and measure them."""
        changes = (each.strength * each.change for each in requests)
        changed = zip(requests, apply_changes([each.photo for each in requests], changes), strict=True)
        threads = min(torch.get_num_threads(), len(requests))
        files = list(prefetch_map(cls._file, changed, threads=threads) if threads > 1 else map(cls._file, changed))
        answers = list(zip(requests, files, strict=True))
        pairs = [(each.image, file[1]) for each, file in answers if not isinstance(file, PhotoError)]
        psnrs = iter(psnr_batch([image for image, _ in pairs], [decoded for _, decoded in pairs]))
        return [
            file if isinstance(file, PhotoError) else Candidate(*file, each.strength, each.finer, next(psnrs))
            for each, file in answers
        ]

    @staticmethod
    def _file(item: tuple[WriteCandidate, Photo]) -> tuple[bytes, Tensor] | PhotoError:
        request, changed = item
        try:
            data = changed.encode(request.format, request.finer, request.quick)
            return data, Photo.decode(data, changed.name).pixels(request.image.device)
        except PhotoError as error:
            return error


class IndexPosition(NamedTuple):
    """Descriptor (D,), cell and loss of an image."""

    descriptor: Tensor
    cell: int
    loss: float


@dataclass(frozen=True)
class Evaluator:
    """Extractor, codebook and objective of a batch."""

    extractor: Extractor
    codebook: Codebook
    objective: Objective

    def positions(self, descriptors: Tensor, indices: Sequence[int]) -> list[IndexPosition]:
        """The position of each of (N, D) descriptors, which belong to the photos with these batch indices."""
        device = self.extractor.device
        losses = self.objective.select(to_device(np.array(indices), device))(descriptors.to(device)).tolist()
        per_photo = zip(descriptors, self.codebook.cells(descriptors).tolist(), losses, strict=True)
        return [IndexPosition(*each) for each in per_photo]


@dataclass(frozen=True)
class LocateInIndex(BatchedRequest):
    """The IndexPosition of each of these network inputs, for the photo with this batch index."""

    evaluator: Evaluator
    index: int
    inputs: Sequence[Tensor]

    @classmethod
    def answer(cls, requests: Sequence[LocateInIndex]) -> list[list[IndexPosition]]:
        """Describe all inputs in one batch."""
        evaluator = requests[0].evaluator
        descriptors = describe_images(evaluator.extractor, [image for each in requests for image in each.inputs])
        positions = iter(evaluator.positions(descriptors, [each.index for each in requests for _ in each.inputs]))
        return [list(islice(positions, len(each.inputs))) for each in requests]


@dataclass(frozen=True)
class MeasureQuality(BatchedRequest):
    """The Quality of a decoded image compared with the original."""

    image: Tensor
    decoded: Tensor

    @classmethod
    def answer(cls, requests: Sequence[MeasureQuality]) -> list[Quality]:
        """Compare at full size."""
        return measure_batch([each.image for each in requests], [each.decoded for each in requests])

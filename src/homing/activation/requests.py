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
from homing.extractors import Extractor, describe
from homing.objectives import Objective
from homing.perception import Quality
from homing.perception.quality import measure_batch, psnr_batch
from homing.photo import Photo, apply_changes


@dataclass(frozen=True)
class PredictPsnr(BatchedRequest):
    """Which PSNR will the file with so many times the change have? A number of dB."""

    predictor: JpegPsnr
    strength: float

    @classmethod
    def answer(cls, requests: Sequence[PredictPsnr]) -> list[float]:
        """From libjpeg's arithmetic."""
        return predict_psnr([each.predictor for each in requests], [each.strength for each in requests])


class Candidate(NamedTuple):
    """One way to write a photo, measured on its bytes."""

    data: bytes
    decoded: Tensor
    """The image of what was written."""
    strength: float
    finer: bool
    psnr: float


@dataclass(frozen=True)
class WriteCandidate(BatchedRequest):
    """What becomes of a photo, of which this is the image, with so many times a change? A Candidate.

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
        """On the bytes of files, which are decoded again."""
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
    """Where something stands in the index: its descriptor (D,), its cell, and what the objective says."""

    descriptor: Tensor
    cell: int
    loss: float


@dataclass(frozen=True)
class Evaluator:
    """One for all photos of a batch."""

    extractor: Extractor
    codebook: Codebook
    objective: Objective

    def positions(self, descriptors: Tensor, indices: Sequence[int]) -> list[IndexPosition]:
        """Where (N, D) descriptors stand, given which photos of the batch they are of."""
        device = self.extractor.device
        losses = self.objective.select(to_device(np.array(indices), device))(descriptors.to(device)).tolist()
        per_photo = zip(descriptors, self.codebook.cells(descriptors).tolist(), losses, strict=True)
        return [IndexPosition(*each) for each in per_photo]


@dataclass(frozen=True)
class LocateInIndex(BatchedRequest):
    """The IndexPosition of the photo with this index for each of these network inputs."""

    evaluator: Evaluator
    index: int
    inputs: Sequence[Tensor]

    @classmethod
    def answer(cls, requests: Sequence[LocateInIndex]) -> list[list[IndexPosition]]:
        """By what the network says."""
        evaluator = requests[0].evaluator
        descriptors = describe(evaluator.extractor, [image for each in requests for image in each.inputs])
        positions = iter(evaluator.positions(descriptors, [each.index for each in requests for _ in each.inputs]))
        return [list(islice(positions, len(each.inputs))) for each in requests]


@dataclass(frozen=True)
class MeasureQuality(BatchedRequest):
    """What does it cost to show this image instead of that? A Quality."""

    image: Tensor
    decoded: Tensor

    @classmethod
    def answer(cls, requests: Sequence[MeasureQuality]) -> list[Quality]:
        """By all of their pixels."""
        return measure_batch([each.image for each in requests], [each.decoded for each in requests])

"""What a photo asks on its way to a file; each is answered for many photos at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from homing._machine import send
from homing._parallel import map_ahead
from homing.activation.courses import Request
from homing.activation.forecast import Forecast, foretell
from homing.codebooks import Codebook
from homing.errors import PhotoError
from homing.extractors import Extractor, describe
from homing.objectives import Objective
from homing.perception import Quality
from homing.perception.quality import measure_each, psnr_of_each
from homing.photo import Photo, moved_each


@dataclass(frozen=True)
class Foretell(Request):
    """Which PSNR will the file with so many times the change have? A number of dB."""

    forecast: Forecast
    strength: float

    @classmethod
    def answer(cls, requests: Sequence[Foretell]) -> list[float]:
        """From libjpeg's arithmetic."""
        return foretell([each.forecast for each in requests], [each.strength for each in requests])


class Trial(NamedTuple):
    """One way to write a photo, measured on its bytes."""

    data: bytes
    seen: Tensor
    """The view of what was written."""
    strength: float
    finer: bool
    psnr: float


@dataclass(frozen=True)
class Write(Request):
    """What becomes of a photo, of which this is the view, with so many times a change? A Trial.

    `finer` and `quick` as in `Photo.encode`.
    """

    photo: Photo
    view: Tensor
    change: Tensor
    format: str | None
    finer: bool
    strength: float
    quick: bool = True

    @classmethod
    def answer(cls, requests: Sequence[Write]) -> list[Trial | PhotoError]:
        """On the bytes of files, which are decoded again."""
        changes = (each.strength * each.change for each in requests)
        moved = zip(requests, moved_each([each.photo for each in requests], changes), strict=True)
        threads = min(torch.get_num_threads(), len(requests))
        files = list(map_ahead(cls._file, moved, threads=threads) if threads > 1 else map(cls._file, moved))
        answers = list(zip(requests, files, strict=True))
        pairs = [(each.view, file[1]) for each, file in answers if not isinstance(file, PhotoError)]
        psnrs = iter(psnr_of_each([view for view, _ in pairs], [seen for _, seen in pairs]))
        return [
            file if isinstance(file, PhotoError) else Trial(*file, each.strength, each.finer, next(psnrs))
            for each, file in answers
        ]

    @staticmethod
    def _file(asked: tuple[Write, Photo]) -> tuple[bytes, Tensor] | PhotoError:
        request, moved = asked
        try:
            data = moved.encode(request.format, request.finer, request.quick)
            return data, Photo.decode(data, moved.name).view(request.view.device)
        except PhotoError as error:
            return error


class Standing(NamedTuple):
    """Where something stands in the index: its descriptor (D,), its cell, and what the objective says."""

    descriptor: Tensor
    cell: int
    loss: float


@dataclass(frozen=True)
class Judge:
    """One for all photos of a batch."""

    extractor: Extractor
    codebook: Codebook
    objective: Objective

    def standings(self, descriptors: Tensor, places: Sequence[int]) -> list[Standing]:
        """Where (N, D) descriptors stand, given which photos of the batch they are of."""
        device = self.extractor.device
        losses = self.objective.at(send(np.array(places), device))(descriptors.to(device)).tolist()
        of_each = zip(descriptors, self.codebook.cells(descriptors).tolist(), losses, strict=True)
        return [Standing(*each) for each in of_each]


@dataclass(frozen=True)
class Stand(Request):
    """Where would the photo at this place of the batch stand if the network saw these squares? A Standing for each."""

    judge: Judge
    place: int
    squares: Sequence[Tensor]

    @classmethod
    def answer(cls, requests: Sequence[Stand]) -> list[list[Standing]]:
        """By what the network says."""
        judge = requests[0].judge
        seen = describe(judge.extractor, [square for each in requests for square in each.squares])
        standings = iter(judge.standings(seen, [each.place for each in requests for _ in each.squares]))
        return [list(islice(standings, len(each.squares))) for each in requests]


@dataclass(frozen=True)
class Measure(Request):
    """What does it cost to show this view instead of that? A Quality."""

    view: Tensor
    seen: Tensor

    @classmethod
    def answer(cls, requests: Sequence[Measure]) -> list[Quality]:
        """By all of their pixels."""
        return measure_each([each.view for each in requests], [each.seen for each in requests])

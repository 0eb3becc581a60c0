"""Predict the PSNR of a JPEG file without writing it, with the arithmetic and the tables of libjpeg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._tensors import constant, map_by_shape, to_device
from homing.edits.jpeg import dct_matrix
from homing.perception.quality import psnr_from_error
from homing.photo import JpegTables, Photo

# RGB to YCbCr and back, with libjpeg's constants.
_RGB_TO_YCC = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))
_YCC_TO_RGB = ((1.0, 0.0, 1.402), (1.0, -0.344136, -0.714136), (1.0, 1.772, 0.0))
# What libjpeg adds before it rounds down, in even and in odd columns, when it down- and upsamples chroma.
_DOWNSAMPLING_BIAS = {(1, 2): (0.0, 0.5), (2, 2): (0.25, 0.5)}
_UPSAMPLING_BIAS = {(1, 2): (0.25, 0.5), (2, 2): (0.5, 0.4375)}
_TIE_BREAK = 1e-3  # libjpeg's integer sums are often exactly one half; float sums need a fixed direction of rounding
_IDCT_SCALE = 4 * math.sqrt(8)  # libjpeg's fixed-point scale in the inverse DCT, per level
_PIXELS_PER_BAND = 4_000_000  # pixels at a time, so that memory does not grow with the size of a photo
_SIZE_MULTIPLE = 64  # pixels: photos of about the same size are predicted together


class JpegPsnr:
    """Predictor for one photo written as JPEG with these tables; image and change (3, H, W) are on one device."""

    def __init__(self, photo: Photo, image: Tensor, change: Tensor, tables: JpegTables) -> None:
        self.original, self.change = photo.to_stored_orientation(image), photo.to_stored_orientation(change)
        if len(tables.quantization) == 1:
            self.original, self.change = self.original[:1], self.change.mean(dim=0, keepdim=True)
        self.steps = to_device(np.array(tables.quantization, np.float32).reshape(-1, 1, 8, 1, 8), image.device)
        self.sampling = tables.sampling


@torch.inference_mode()
def predict_psnr(predictors: Sequence[JpegPsnr], strengths: Sequence[float]) -> list[float]:
    """The PSNR of each file whose change is scaled by `strengths`; synchronizes the device once."""
    parameters = [(strength, *each.original.shape[1:]) for each, strength in zip(predictors, strengths, strict=True)]
    on_device = to_device(np.array(parameters, np.float32), predictors[0].original.device)[:, None, None]
    errors: dict[int, Tensor] = {}
    for sampling in dict.fromkeys(each.sampling for each in predictors):
        group = {index: each for index, each in enumerate(predictors) if each.sampling == sampling}
        given = [(each.original, each.change, each.steps, on_device[index]) for index, each in group.items()]
        sums = map_by_shape(
            partial(_squared_errors, sampling=sampling), *zip(*given, strict=True), size_multiple=_SIZE_MULTIPLE
        )
        errors.update(zip(group, sums, strict=True))
    off = torch.stack([errors[index] for index in range(len(predictors))]).tolist()
    return [psnr_from_error(error / 255**2, each.original.numel()) for error, each in zip(off, predictors, strict=True)]


def _squared_errors(
    original: Tensor, change: Tensor, steps: Tensor, parameters: Tensor, *, sampling: tuple[int, int]
) -> Tensor:
    """The sum of squared errors, in levels, of the files of (B, C, H, W) images: (B,).

    `parameters` are the strength, height and width of each: (B, 1, 1, 3).
    """
    strength, height, width = torch.split(parameters, 1, dim=3)
    down, across = (torch.arange(side, device=original.device) for side in original.shape[2:])
    inside = (down[:, None] < height) & (across < width)
    rows = max(_PIXELS_PER_BAND // (len(original) * original.shape[3]) // 16 * 16, 16)
    errors = []
    for before, more, counts in zip(
        *(torch.split(each, rows, dim=2) for each in (original, change, inside)), strict=True
    ):
        levels = (255 * before).round_()
        changed = levels.addcmul(more, strength, value=255).round_().clamp_(0, 255)
        off = _round_trip(changed, steps, sampling).sub_(levels).square_().mul_(counts)
        errors.append(off.sum(dim=3).sum(dim=(1, 2), dtype=torch.float64))
    return torch.stack(errors).sum(dim=0)


def _round_trip(levels: Tensor, steps: Tensor, sampling: tuple[int, int]) -> Tensor:
    """(B, C, H, W) levels after writing and reading a JPEG file."""
    height, width = levels.shape[2:]
    planes = F.pad(levels, (0, -width % (8 * sampling[1]), 0, -height % (8 * sampling[0])), mode="replicate")
    if levels.shape[1] == 1:
        return _quantize_dct(planes.sub_(128), steps).add_(128)[..., :height, :width]
    planes = _mix_channels(planes, _RGB_TO_YCC)
    planes[:, 1:] -= _TIE_BREAK
    planes.round_()
    luma, chroma = _quantize_dct(planes[:, :1] - 128, steps[:, :1]).add_(128), planes[:, 1:]
    if sampling != (1, 1):
        chroma = _floor_with_bias(F.avg_pool2d(chroma, sampling), _DOWNSAMPLING_BIAS[sampling])
    chroma = _quantize_dct(chroma, steps[:, 1:])
    if sampling != (1, 1):
        chroma = F.interpolate(chroma, scale_factor=sampling, mode="bilinear", align_corners=False)
        chroma = _floor_with_bias(chroma, _UPSAMPLING_BIAS[sampling])
    return _mix_channels(torch.cat([luma, chroma], dim=1), _YCC_TO_RGB).round_().clamp_(0, 255)[..., :height, :width]


def _mix_channels(planes: Tensor, weights: tuple[tuple[float, ...], ...]) -> Tensor:
    """Linear combinations of the channels of (B, 3, H, W) planes."""
    return (constant(weights, planes.device) @ planes.flatten(2)).view_as(planes)


def _quantize_dct(planes: Tensor, steps: Tensor) -> Tensor:
    """(B, C, H, W) planes, centered at 0, with the DCT coefficients of each block quantized to their steps."""
    height, width = planes.shape[2:]
    strips, blocks = (-1, steps.shape[1], height // 8, 8, width), (-1, steps.shape[1], height // 8, 8, width // 8, 8)
    transform = dct_matrix(8, planes.device, planes.dtype)
    eighths = ((transform @ planes.reshape(strips)).view(blocks) @ transform.mT).mul_(8).round_()  # libjpeg's scale
    # Halves are rounded away from 0.
    multiples = eighths.abs().add_(4 * steps + 0.5).div_(8 * steps).floor_().copysign_(eighths).mul_(steps)
    # The inverse transforms columns first and rounds the intermediate result.
    columns = (transform.mT @ multiples.view(strips)).mul_(_IDCT_SCALE).round_().div_(_IDCT_SCALE)
    rows = columns.view(blocks) @ transform
    return rows.view(planes.shape).add_(_TIE_BREAK).round_().clamp_(-128, 127)


def _floor_with_bias(planes: Tensor, more: tuple[float, float]) -> Tensor:
    return planes.add_(constant(more, planes.device).repeat(planes.shape[3] // 2)).floor_()

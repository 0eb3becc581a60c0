"""The frozen labels and parameters of the set "wild", in `data/wild.toml`."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from homing.edits._assets import DATA
from homing.edits._views import Views

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WILD: Mapping[str, Any] = tomllib.loads((DATA / "wild.toml").read_text(encoding="utf-8"))


def sample_parameter(rng: np.random.Generator, name: str, key: str) -> float:
    """A random number in the range of this parameter of an edit."""
    low, high = WILD[name][key]
    return float(rng.uniform(low, high))


def sample_ratio(rng: np.random.Generator, name: str) -> float:
    """A random ratio in the edit's range `aspect`, uniform in its logarithm."""
    low, high = np.log(WILD[name]["aspect"])
    return float(np.exp(rng.uniform(low, high)))


def sample_parameters(views: Views, name: str, key: str, generator: torch.Generator) -> Tensor:
    """Random numbers (B,) in the range of this parameter of an edit."""
    low, high = map(float, WILD[name][key])
    return low + (high - low) * uniform(views, generator)


def sample_ratios(views: Views, name: str, generator: torch.Generator) -> Tensor:
    """Random ratios (B,) in the edit's range `aspect`, uniform in their logarithm."""
    low, high = map(math.log, WILD[name]["aspect"])
    return (low + (high - low) * uniform(views, generator)).exp()


def uniform(views: Views, generator: torch.Generator) -> Tensor:
    """Random numbers (B,) in [0, 1)."""
    return torch.rand(len(views), generator=generator, device=views.pixels.device, dtype=views.pixels.dtype)


def normal(views: Views, *shape: int, generator: torch.Generator) -> Tensor:
    """Random numbers (B, *shape) of a standard normal distribution."""
    size = (len(views), *shape)
    return torch.randn(size, generator=generator, device=views.pixels.device, dtype=views.pixels.dtype)

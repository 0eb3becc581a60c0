"""The options of jobs on a cluster, which are checked before Ray starts."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest

from homing import cluster
from homing.collection import Collection
from homing.errors import HomingError


def test_activation_has_the_options_of_a_collection() -> None:
    of_a_collection = set(signature(Collection.activate).parameters) - {"self", "photos", "processes"}
    assert of_a_collection <= set(signature(cluster.activate).parameters)


def test_the_psnr_replaces_that_of_the_recipe(tmp_path: Path) -> None:
    def activate(psnr: float) -> None:
        cluster.activate([], str(tmp_path / "c"), tmp_path, recipe="homing", psnr=psnr, on_outcome=lambda _: None)

    with pytest.raises(HomingError, match="psnr must be between 20 and 80 dB, got -1"):
        activate(psnr=-1)
    with pytest.raises(HomingError, match="is not a collection"):
        activate(psnr=46)

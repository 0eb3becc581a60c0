"""A small real Ray on this machine, and a codebook for a tiny network."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
from tests.cluster.helpers import MEMORY, small_codebook
from tests.collection.conftest import bucket, folder

from homing.codebooks import Codebook

__all__ = ["book", "bucket", "folder", "ray"]


@pytest.fixture(scope="session")
def ray() -> Iterator[None]:
    """Ray with two cores and one declared GPU, shared by all tests."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        import ray.data

        ray.init(num_cpus=2, num_gpus=1, object_store_memory=MEMORY, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Codebook:
    return small_codebook(tmp_path_factory.mktemp("network"))

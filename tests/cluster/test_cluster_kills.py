"""A job on Ray killed at any time loses and repeats nothing. benchmarks/cluster_kills.py kills more often."""

from pathlib import Path

import pytest
from tests.cluster.kill_jobs import KillScenario

pytestmark = pytest.mark.cluster

KILLS = 3


def test_photos_are_released_once_despite_killed_workers(tmp_path: Path) -> None:
    scenario = KillScenario(tmp_path, photos=300, seed=1)
    scenario.kill_workers(KILLS)
    assert scenario.killed.total() >= 1, "the job ended before a worker was killed"
    scenario.verify()


def test_the_next_job_completes_a_killed_one(tmp_path: Path) -> None:
    scenario = KillScenario(tmp_path, photos=300, seed=2)
    scenario.kill_job()
    assert scenario.left() > 0, "the job ended before it was killed"
    scenario.finish()
    scenario.verify()

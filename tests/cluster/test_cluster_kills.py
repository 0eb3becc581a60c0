"""Killed at any instant, a job on Ray loses and repeats nothing; benchmarks/cluster_kills.py kills more often."""

from pathlib import Path

import pytest
from tests.cluster.kill_jobs import KillScenario

pytestmark = pytest.mark.cluster

KILLS = 3


def test_workers_are_killed_and_every_photo_is_released_once(tmp_path: Path) -> None:
    scenario = KillScenario(tmp_path, photos=300, seed=1)
    scenario.kill_workers(KILLS)
    assert scenario.killed.total() >= 1, "the job was done before anybody was killed"
    scenario.verify()


def test_a_job_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    scenario = KillScenario(tmp_path, photos=300, seed=2)
    scenario.kill_job()
    assert scenario.left() > 0, "the job was done before it was killed"
    scenario.finish()
    scenario.verify()

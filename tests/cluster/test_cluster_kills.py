"""Killed at any instant, a job on Ray loses and repeats nothing; benchmarks/cluster_kills.py kills more often."""

from pathlib import Path

from tests.cluster.killing import Life

KILLS = 3


def test_workers_are_killed_and_every_photo_is_released_once(tmp_path: Path) -> None:
    life = Life(tmp_path, photos=300, seed=1)
    life.kill_workers(KILLS)
    assert life.killed.total() >= 1, "the job was done before anybody was killed"
    life.verify()


def test_a_job_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    life = Life(tmp_path, photos=300, seed=2)
    life.kill_job()
    assert life.left() > 0, "the job was done before it was killed"
    life.finish()
    life.verify()

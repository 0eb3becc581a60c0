"""Killed at any instant, a collection opens again with all that was told; benchmarks/kills.py kills more often."""

from pathlib import Path

from tests.collection.killing import Life, nursery

KILLS = 25


def test_nothing_told_is_lost_however_often_it_is_killed(tmp_path: Path) -> None:
    life = Life(tmp_path, seed=7)
    with nursery() as born:
        for _ in range(KILLS):
            life.kill_once(born)
    assert life.seen["kills"] == KILLS
    for state in ("added", "activated", "removed"):
        assert life.seen[state] >= 3, f"too little was {state} to lose any of it"

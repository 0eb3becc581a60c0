"""Killed at any instant, a collection opens again with all that was reported; benchmarks/kills.py kills more often."""

from pathlib import Path

import pytest
from tests.collection.crashes import Life, nursery

pytestmark = pytest.mark.slow

KILLS = 25


STATES = ("added", "activated", "removed")


def test_nothing_told_is_lost_however_often_it_is_killed(tmp_path: Path) -> None:
    life = Life(tmp_path, seed=7)
    with nursery() as born:
        for _ in range(4 * KILLS):
            life.kill_once(born)
            if life.seen["kills"] >= KILLS:
                if all(life.seen[state] >= 3 for state in STATES):
                    break
                life.longest *= 1.04  # a busy machine gets less done before it is killed: 7 s at last
    for state in STATES:
        assert life.seen[state] >= 3, f"too little was {state} to lose any of it"

"""After a kill at any time a collection holds all that was reported. benchmarks/kills.py repeats this more often."""

from pathlib import Path

import pytest
from tests.collection.crashes import KilledCollection, fork_server

pytestmark = pytest.mark.slow

KILLS = 25


STATES = ("added", "activated", "removed")


def test_nothing_reported_is_lost_after_kills(tmp_path: Path) -> None:
    collection = KilledCollection(tmp_path, seed=7)
    with fork_server() as server:
        for _ in range(4 * KILLS):
            collection.kill_once(server)
            if collection.seen["kills"] >= KILLS:
                if all(collection.seen[state] >= 3 for state in STATES):
                    break
                collection.longest *= 1.04  # a busy machine gets less done before it is killed: 7 s at last
    for state in STATES:
        assert collection.seen[state] >= 3, f"too few photos were {state} for this test to find a loss"

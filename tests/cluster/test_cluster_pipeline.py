"""A worker reads the files of one batch while it computes another, and never computes two at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from homing.cluster.ray_pipeline import Resources, Stage, _Batch, _pack, _unpack, _Worker


def test_a_worker_reads_several_batches_and_computes_one_at_a_time() -> None:
    together, core = threading.Barrier(2, timeout=30), threading.Lock()

    def read(items: list[int]) -> list[int]:
        together.wait()  # times out unless the other batch is read at the same time
        return items

    def compute(items: list[int]) -> list[int]:
        assert core.acquire(blocking=False), "another batch is being computed"
        time.sleep(0.05)
        core.release()
        return [2 * item for item in items]

    worker = _Worker([Stage("read", read, "io"), Stage("decode", compute, "cpu"), Stage("net", compute, "network")])
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(worker, [_pack(_Batch([1, 2])), _pack(_Batch([3]))]))
    batches = [_unpack(table) for table in done]
    assert [batch.items for batch in batches] == [[4, 8], [12]]
    assert [[took.stage for took in batch.took] for batch in batches] == [["read", "decode", "net"]] * 2


@pytest.mark.usefixtures("ray")
def test_workers_never_use_more_than_the_available_cores() -> None:
    for count in (1, 2, 3, 7):
        with Resources(workers=count, gpus=0).start() as workers:
            assert workers.count == count and workers.cpus <= 1
            assert round(workers.cpus, 4) == workers.cpus and workers.cpus * count <= 2

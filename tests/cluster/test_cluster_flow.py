"""A worker waits for the files of one parcel while it computes another, and never computes two."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from homing.cluster.flow import Stage, _packed, _Parcel, _unpacked, _Worker
from homing.cluster.machines import Machines


def test_a_worker_waits_for_files_of_several_parcels_and_computes_one_at_a_time() -> None:
    together, core = threading.Barrier(2, timeout=30), threading.Lock()

    def read(items: list[int]) -> list[int]:
        together.wait()  # breaks if the other parcel is not read meanwhile
        return items

    def compute(items: list[int]) -> list[int]:
        assert core.acquire(blocking=False), "another parcel is being computed"
        time.sleep(0.05)
        core.release()
        return [2 * item for item in items]

    worker = _Worker([Stage("read", read, "files"), Stage("decode", compute, "core"), Stage("net", compute, "network")])
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(worker, [_packed(_Parcel([1, 2])), _packed(_Parcel([3]))]))
    parcels = [_unpacked(table) for table in done]
    assert [parcel.items for parcel in parcels] == [[4, 8], [12]]
    assert [[took.stage for took in parcel.took] for parcel in parcels] == [["read", "decode", "net"]] * 2


@pytest.mark.usefixtures("ray")
def test_workers_never_take_more_than_there_is() -> None:
    for count in (1, 2, 3, 7):
        with Machines(workers=count, gpus=0).ready() as workers:
            assert workers.count == count and workers.cpus <= 1
            assert round(workers.cpus, 4) == workers.cpus and workers.cpus * count <= 2

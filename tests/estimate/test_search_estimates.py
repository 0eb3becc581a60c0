"""Estimated searches and storage, compared with a real index and with measurements."""

import numpy as np
import pytest

from homing import codebooks
from homing.estimate import (
    EstimateRequest,
    cell_choice_ms,
    estimate,
    latencies,
    latency,
    latency_model,
    load_rates,
    rates_under,
    storage,
)
from homing.indexes import FaissIndex
from homing.indexes.base import MAX_CODES_IN_MEMORY

ONE = EstimateRequest(photos=10**9)


@pytest.fixture(scope="module")
def index() -> FaissIndex:
    codebook = codebooks.load("homing-1")
    result = FaissIndex(codebook)
    result.add(codebooks.bundled_distractors(codebook).codes, np.arange(118_287))
    return result


def test_probes_equal_those_of_an_index(index: FaissIndex) -> None:
    assert latency(ONE, len(index), 4096, None).probes == index.default_nprobe()


def test_storage_equals_that_of_an_index(index: FaissIndex) -> None:
    (snapshot,) = (part for part in storage(EstimateRequest(photos=len(index))) if part.name == "snapshot of the index")
    assert snapshot.bytes == pytest.approx(len(index.to_bytes()), rel=0.02)


def test_storage_is_close_to_measurements() -> None:
    rates = rates_under("search.faiss")
    for references, disk, memory in zip(
        *(rates[name].numbers for name in ("references", "disk", "memory")), strict=True
    ):
        found = {
            part.where: part.bytes / 1e6 for part in storage(EstimateRequest(photos=int(references), recipe="passive"))
        }
        assert found["disk"] == pytest.approx(disk, rel=0.05)  # the last item on disk is the snapshot
        assert found["memory"] == pytest.approx(memory, rel=0.1)


def test_the_parts_of_the_catalog_sum_to_the_measured_size() -> None:
    for recipe, kind in (("homing", "activated"), ("passive", "passive")):
        parts = storage(EstimateRequest(photos=1000, recipe=recipe))
        together = sum(part.bytes for part in parts if part.name.startswith("catalog"))
        assert together == pytest.approx(1000 * load_rates()[f"catalog.{kind}"].number)
        assert all(part.bytes > 0 for part in parts)
    longer = storage(EstimateRequest(photos=1000, code_bytes=16, cells=2**18))
    assert {part.name: part.bytes for part in longer}["catalog: codes"] == 19_000


@pytest.mark.parametrize("engine", sorted({name.partition(".")[0] for name in rates_under("search")}))
def test_the_latency_model_fits_the_measurements(engine: str) -> None:
    rates, found = rates_under(f"search.{engine}"), latency_model(engine)
    assert found.code_ms > 0
    for search in ("one", "default"):
        each = (
            rates[name].numbers for name in ("references", *(f"{search}_{name}" for name in ("probes", "codes", "p50")))
        )
        for references, probes, codes, p50 in zip(*each, strict=True):
            if engine == "faiss" or references > MAX_CODES_IN_MEMORY:
                assert found.milliseconds(int(probes), codes, 4096) == pytest.approx(p50, rel=0.4)


def test_small_collections_in_lance_are_searched_in_memory() -> None:
    lance, faiss = (EstimateRequest(photos=10**9, engine=engine) for engine in ("lance", "faiss"))
    for probes in (1, None):
        assert latency(lance, MAX_CODES_IN_MEMORY, 4096, probes) == latency(faiss, MAX_CODES_IN_MEMORY, 4096, probes)
        assert (
            latency(lance, MAX_CODES_IN_MEMORY + 1, 4096, probes).p50_ms
            > 5 * latency(faiss, MAX_CODES_IN_MEMORY, 4096, probes).p50_ms
        )


def test_latency_grows_with_scanned_codes() -> None:
    """One probe of n references scans n / 4096 codes, so the term per code dominates for large n."""
    times = [latency(ONE, 10**power, 4096, 1).p50_ms for power in (7, 8, 9)]
    assert (times[2] - times[1]) == pytest.approx(10 * (times[1] - times[0]))
    assert latency(ONE, 10**9, 65_536, 1).codes_scanned == pytest.approx(
        latency(ONE, 10**9, 4096, 1).codes_scanned / 16
    )


def test_basis_of_latencies() -> None:
    largest = int(max(rates_under("search.faiss")["references"].numbers))
    assert latency(ONE, largest, 4096, 1).basis == "measured"
    assert latency(ONE, largest + 1, 4096, 1).basis == "extrapolated"
    assert latency(ONE, 10_000, 65_536, 1).basis == "extrapolated"


def test_more_cells_are_listed_if_one_probe_scans_too_many_codes() -> None:
    assert {each.cells for each in latencies(EstimateRequest(photos=10**7))} == {4096}
    assert {each.cells for each in latencies(ONE)} == {4096, 65_536, 262_144}
    assert {each.probes for each in latencies(EstimateRequest(photos=10**6, probes=16))} == {16}
    assert any("trained" in each for each in estimate(ONE).assumptions)


def test_cell_choice_uses_the_faster_method() -> None:
    counts, flat, graph = (load_rates()[f"cells.{name}"].numbers for name in ("counts", "flat", "graph"))
    for count, all_centers, along in zip(counts, flat, graph, strict=True):
        assert cell_choice_ms(int(count)) == pytest.approx(min(all_centers, along))
    assert cell_choice_ms(2**20) == pytest.approx(4 * cell_choice_ms(2**18))

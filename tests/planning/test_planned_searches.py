"""Searches and storage of a plan, beside those of a real index and those that were measured."""

import numpy as np
import pytest

from homing import codebooks
from homing.indexes import FaissIndex
from homing.indexes.base import IN_MEMORY
from homing.planning import Question, measured, plan
from homing.planning.rates import below
from homing.planning.searching import choose, latencies, latency, line
from homing.planning.storage import storage

ONE = Question(photos=10**9)


@pytest.fixture(scope="module")
def index() -> FaissIndex:
    codebook = codebooks.load("homing-1")
    made = FaissIndex(codebook)
    made.add(codebooks.bundled_background(codebook).codes, np.arange(118_287))
    return made


def test_probes_are_those_of_an_index(index: FaissIndex) -> None:
    assert latency(ONE, len(index), 4096, None).probes == index.fast_probes()


def test_storage_is_that_of_an_index(index: FaissIndex) -> None:
    (snapshot,) = (part for part in storage(Question(photos=len(index))) if part.name == "snapshot of the index")
    assert snapshot.bytes == pytest.approx(len(index.to_bytes()), rel=0.02)


def test_storage_is_that_measured() -> None:
    rates = below("search.faiss")
    for references, disk, memory in zip(
        *(rates[name].numbers for name in ("references", "disk", "memory")), strict=True
    ):
        found = {part.where: part.bytes / 1e6 for part in storage(Question(photos=int(references), recipe="passive"))}
        assert found["disk"] == pytest.approx(disk, rel=0.05)  # the last on disk is the snapshot
        assert found["memory"] == pytest.approx(memory, rel=0.1)


def test_the_parts_of_the_catalogue_are_as_measured_together() -> None:
    for recipe, kind in (("homing", "activated"), ("passive", "passive")):
        parts = storage(Question(photos=1000, recipe=recipe))
        together = sum(part.bytes for part in parts if part.name.startswith("catalogue"))
        assert together == pytest.approx(1000 * measured()[f"catalogue.{kind}"].number)
        assert all(part.bytes > 0 for part in parts)
    longer = storage(Question(photos=1000, code_bytes=16, cells=2**18))
    assert {part.name: part.bytes for part in longer}["catalogue: codes"] == 19_000


@pytest.mark.parametrize("engine", sorted({name.partition(".")[0] for name in below("search")}))
def test_the_line_goes_through_what_was_measured(engine: str) -> None:
    rates, found = below(f"search.{engine}"), line(engine)
    assert found.code > 0
    for way in ("one", "default"):
        each = (
            rates[name].numbers for name in ("references", *(f"{way}_{name}" for name in ("probes", "codes", "p50")))
        )
        for references, probes, codes, p50 in zip(*each, strict=True):
            if engine == "faiss" or references > IN_MEMORY:
                assert found.milliseconds(int(probes), codes, 4096) == pytest.approx(p50, rel=0.4)


def test_few_references_in_lance_are_searched_as_fast_as_in_memory() -> None:
    lance, faiss = (Question(photos=10**9, engine=engine) for engine in ("lance", "faiss"))
    for probes in (1, None):
        assert latency(lance, IN_MEMORY, 4096, probes) == latency(faiss, IN_MEMORY, 4096, probes)
        assert latency(lance, IN_MEMORY + 1, 4096, probes).p50_ms > 5 * latency(faiss, IN_MEMORY, 4096, probes).p50_ms


def test_a_search_grows_with_the_codes_it_looks_at() -> None:
    """One probe of n references looks at n / 4096 codes: the line of the largest is ten times as steep."""
    times = [latency(ONE, 10**power, 4096, 1).p50_ms for power in (7, 8, 9)]
    assert (times[2] - times[1]) == pytest.approx(10 * (times[1] - times[0]))
    assert latency(ONE, 10**9, 65_536, 1).codes == pytest.approx(latency(ONE, 10**9, 4096, 1).codes / 16)


def test_what_is_measured_and_what_is_not() -> None:
    largest = int(max(below("search.faiss")["references"].numbers))
    assert latency(ONE, largest, 4096, 1).basis == "measured"
    assert latency(ONE, largest + 1, 4096, 1).basis == "extrapolated"
    assert latency(ONE, 10_000, 65_536, 1).basis == "extrapolated"


def test_other_cells_are_shown_where_one_probe_looks_at_too_many_codes() -> None:
    assert {each.cells for each in latencies(Question(photos=10**7))} == {4096}
    assert {each.cells for each in latencies(ONE)} == {4096, 65_536, 262_144}
    assert {each.probes for each in latencies(Question(photos=10**6, probes=16))} == {16}
    assert any("trained" in each for each in plan(ONE).assumptions)


def test_choosing_a_cell_takes_the_faster_way() -> None:
    counts, flat, graph = (measured()[f"cells.{name}"].numbers for name in ("counts", "flat", "graph"))
    for count, all_centres, along in zip(counts, flat, graph, strict=True):
        assert choose(int(count)) == pytest.approx(min(all_centres, along))
    assert choose(2**20) == pytest.approx(4 * choose(2**18))

"""Damaged files are decoded or refused with a one-line error, in time; benchmarks/fuzz.py reads thousands."""

import os
import signal
import time
from collections import Counter

import pytest
from tests.photo.fuzzing import LONGEST, damaged, read_in_process, seeds

from homing.photo import SUFFIXES

pytestmark = pytest.mark.slow

FILES = 300


def test_valid_files_of_every_format_are_decoded() -> None:
    verdicts = list(read_in_process(seeds().values()))
    assert {verdict.kind for verdict in verdicts} == {"decoded"}
    assert {verdict.words for verdict in verdicts} == set(SUFFIXES)


def test_damaged_files_are_decoded_or_refused() -> None:
    files = [damaged(number) for number in range(FILES)]
    kinds: Counter[str] = Counter()
    for number, verdict in enumerate(read_in_process(data for _, data in files)):
        assert verdict.kind in ("decoded", "refused"), f"file {number}, {files[number][0]}: {verdict}"
        assert verdict.seconds < LONGEST
        kinds[verdict.kind] += 1
    assert min(kinds["decoded"], kinds["refused"]) > FILES // 10, "both results must occur"


def test_crashes_and_timeouts_are_detected() -> None:
    verdicts = list(read_in_process([b"die", b"sleep", b"fine"], read=_odd, longest=5))
    assert [verdict.kind for verdict in verdicts] == ["crashed", "hung", "decoded"]


def _odd(data: bytes) -> tuple[str, str]:
    if data == b"die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if data == b"sleep":
        time.sleep(60)
    return "decoded", ""

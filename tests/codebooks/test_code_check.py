"""Codes match their own descriptors, rounded to fp16, and no others."""

import numpy as np
import pytest
from tests.conftest import descriptors, train

from homing.codebooks import codes_match

SPECS = [
    *("Flat", "PQ8x4", "SQ8", "IVF16,Flat", "IVF16,PQ8x4", "IVF16,PQ8x4fs", "PQ8x4fs", "OPQ4,PQ4x8", "HNSW16,PQ8x4"),
    *("IVF16,SQ8", "RQ4x6", "LSQ4x4", "LSH", "RaBitQ", "IVF16,RaBitQ", "IVF16_HNSW16,PQ8x4", "PCA16,PQ8x4"),
]


@pytest.mark.parametrize("spec", SPECS)
def test_codes_match_their_own_rounded_descriptors_only(spec: str) -> None:
    book, rows = train(spec), descriptors(500, seed=1)
    codes, rounded = book.encode(rows), rows.numpy().astype(np.float16)
    assert codes_match(book, codes, rounded).all()
    assert codes_match(book, np.roll(codes, 1, axis=0), rounded).mean() < 0.02  # a few have the same code


@pytest.mark.parametrize("spec", ["PQ8x4", "IVF16,PQ8x4", "SQ8"])
def test_a_single_changed_byte_is_detected(spec: str) -> None:
    book, rows = train(spec), descriptors(200, seed=2)
    codes, rounded = book.encode(rows), rows.numpy().astype(np.float16)
    codes[:, -1] ^= 0b1000_1000
    assert codes_match(book, codes, rounded).mean() < 0.02


def test_codes_of_unknown_cells_do_not_match() -> None:
    book, rows = train("IVF10,PQ8x4"), descriptors(3, seed=3)
    codes, rounded = book.encode(rows), rows.numpy().astype(np.float16)
    codes[:, 0] = 200
    assert not codes_match(book, codes, rounded).any()


def test_codes_of_photos_on_a_border_match_on_either_side() -> None:
    book, rows = train("IVF16,PQ8x4"), descriptors(200, seed=4)
    inside, outside = rows, rows.roll(1, dims=0)
    for _ in range(40):  # after so many bisections the point is on the border of two cells
        middle = (inside + outside) / 2
        same = (book.cells(middle) == book.cells(rows))[:, None]
        inside, outside = inside.where(~same, middle), outside.where(same, middle)
    codes, rounded = book.encode(inside), inside.numpy().astype(np.float16)
    changed = (book.encode(inside.half().float()) != codes).any(axis=1)
    assert changed.sum() > 20
    assert codes_match(book, codes, rounded).all()

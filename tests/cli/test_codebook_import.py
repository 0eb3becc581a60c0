"""homing codebook import: codebooks from files of FAISS indexes."""

from pathlib import Path

import faiss
import pytest
from tests.cli.commands import homing
from tests.conftest import descriptors

from homing import codebooks


@pytest.fixture
def index_file(tmp_path: Path) -> Path:
    index = faiss.index_factory(512, "IVF16,PQ8x4")
    index.train(descriptors(700, dim=512).numpy())
    index.add(descriptors(10, seed=1, dim=512).numpy())
    faiss.write_index(index, str(tmp_path / "mine.faiss"))
    return tmp_path / "mine.faiss"


def test_an_index_becomes_a_codebook(index_file: Path, tmp_path: Path) -> None:
    done = homing("codebook", "import", index_file, "--out", tmp_path / "mine.codebook")
    assert "mine.codebook: IVF16,PQ8x4, 5 bytes per code" in done.stdout.replace("\n", "")
    book = codebooks.load(tmp_path / "mine.codebook")
    assert (book.name, book.extractor, book.new_faiss().ntotal) == ("mine", "homing-1", 0)


def test_the_null_distribution_is_measured_on_the_photos(index_file: Path, photos: Path, tmp_path: Path) -> None:
    homing("codebook", "import", index_file, "--photos", photos, "--out", tmp_path / "mine.codebook")
    known = codebooks.load(tmp_path / "mine.codebook").null_distribution
    assert known.descriptor.shares[0] >= 1 / 12  # four photos are twelve pairs


def test_a_file_that_is_no_index_is_one_line(photos: Path, tmp_path: Path) -> None:
    done = homing("codebook", "import", photos / "camera.png", "--out", tmp_path / "mine.codebook", code=2)
    assert "is not a FAISS index" in done.stderr

import hashlib
import pickle
from concurrent.futures import ProcessPoolExecutor
from copy import copy
from dataclasses import replace
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from tests.conftest import FakeExtractor, descriptors, train

from homing import codebooks
from homing.codebooks import Codebook
from homing.codebooks.null_distribution import PairDistances
from homing.errors import CodebookError, UnknownNameError


@pytest.fixture(
    scope="module", params=["IVF16,PQ4x6", "PQ4x8", "OPQ4,IVF16,PQ4x4", "IVF16,SQ8", "LSQ4x4", "PCA16,IVF16,Flat"]
)
def trained(request: pytest.FixtureRequest) -> Codebook:
    return train(request.param)


def test_reconstructs_what_faiss_stores(trained: Codebook) -> None:
    rows = descriptors(50, seed=1).numpy()
    index = trained.new_faiss()
    for row in rows:
        index.add(row[None])
    if (ivf := faiss.try_extract_index_ivf(index)) is not None:
        ivf.make_direct_map()
    stored = index.reconstruct_n(0, 50)
    np.testing.assert_allclose(trained.reconstruct(torch.from_numpy(rows)).numpy(), stored, atol=1e-5)


def test_cells_are_those_of_the_nearest_centroid(trained: Codebook) -> None:
    rows = descriptors(50, seed=2).numpy()
    index = trained.new_faiss()
    ivf = faiss.try_extract_index_ivf(index)
    cells = trained.cells(torch.from_numpy(rows)).numpy()
    if ivf is None:
        assert not cells.any()
        return
    transformed = index.chain.at(0).apply(rows) if isinstance(index, faiss.IndexPreTransform) else rows
    centroids = ivf.quantizer.reconstruct_n(0, ivf.nlist)
    nearest = np.linalg.norm(transformed[:, None] - centroids[None], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(cells, nearest)


def test_a_code_does_not_depend_on_the_rest_of_the_batch(trained: Codebook) -> None:
    rows = descriptors(60, seed=4)
    alone = np.concatenate([trained.encode(row[None]) for row in rows])
    np.testing.assert_allclose(trained.decode(alone), trained.reconstruct(rows), atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "median"), [("IVF16,Flat", 2**0.5), ("LSH", 4), ("RaBitQ", 2**0.5), ("HNSW8", 2**0.5)]
)
def test_the_null_distribution_has_the_distances_of_an_index(spec: str, median: float) -> None:
    """Random descriptors are √2 apart, and on different sides of half of 32 planes."""
    known = train(spec).null_distribution.code
    assert np.interp(0.5, known.shares, known.distances) == pytest.approx(median, rel=0.05)


def test_a_rotation_needs_as_many_descriptors_as_dimensions() -> None:
    with pytest.raises(CodebookError, match="OPQ8,PQ8x4 needs at least 320 training descriptors, got 300"):
        Codebook.train(descriptors(300, dim=320).numpy(), spec="OPQ8,PQ8x4", extractor=FakeExtractor(), name="test")


def test_a_missing_codebook_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CodebookError, match="no such file"):
        codebooks.load(str(tmp_path / "mine.codebook"))


@pytest.mark.parametrize("spec", ["LSH", "IVF16,RaBitQ"])
def test_signs_do_not_decode(spec: str) -> None:
    with pytest.raises(CodebookError, match=f"the codes of '{spec}' are signs"):
        train(spec).reconstruct(descriptors(2))


def test_reading_a_written_file_gives_the_codebook(trained: Codebook, tmp_path: Path) -> None:
    trained.write(tmp_path / "a" / "test.codebook")
    again = codebooks.load(str(tmp_path / "a" / "test.codebook"))
    assert (again.fingerprint, again.spec, again.name) == (trained.fingerprint, trained.spec, trained.name)
    rows = descriptors(20, seed=3)
    np.testing.assert_array_equal(again.encode(rows), trained.encode(rows))


def test_pickling_keeps_all_bytes(trained: Codebook) -> None:
    assert pickle.loads(pickle.dumps(trained)).to_bytes() == trained.to_bytes()


def test_a_codebook_can_be_sent_to_another_process() -> None:
    book, rows = train("OPQ4,IVF16,PQ4x4"), descriptors(20, seed=3).numpy()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        codes = pool.submit(_encode, book, rows).result()
    np.testing.assert_array_equal(codes, book.quantizer.encode(rows))


def _encode(book: Codebook, rows: np.ndarray) -> np.ndarray:
    return book.quantizer.encode(rows)


@pytest.mark.parametrize("spec", ["PQ4x6", "OPQ4,PQ4x4", "PCA16,PQ4x5", "PQ8x4fs", "HNSW8,PQ8x4"])
def test_pq_codes_and_codewords_are_what_a_product_quantizer_stores(spec: str) -> None:
    book, rows = train(spec), descriptors(20, seed=3)
    stored = torch.from_numpy(book.transform(book.reconstruct(rows)))
    assert book.is_product
    for number, (codewords, codes) in enumerate(zip(book.codewords, book.pq_codes(rows).T, strict=True)):
        width = codewords.shape[1]
        expected = stored[:, number * width : (number + 1) * width]
        torch.testing.assert_close(codewords[codes], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("spec", ["IVF16,PQ4x6", "RQ4x4", "SQ4", "LSH16", "Flat"])
def test_other_families_are_not_product_quantizers(spec: str) -> None:
    assert not train(spec).is_product


@pytest.mark.parametrize("spec", ["PQ4x6", "OPQ4_16,PQ4x4", "PCAW16,LSH", "PCA16,L2norm,LSHt", "ITQ16,LSH"])
def test_transforms_in_pytorch_are_those_of_faiss(spec: str) -> None:
    book, rows = train(spec), descriptors(20, seed=3)
    transformed = book.torch_transform(rows.device)(rows)
    torch.testing.assert_close(transformed, torch.from_numpy(book.transform(rows)), atol=1e-5, rtol=0)


def test_a_changed_null_distribution_is_refused(trained: Codebook) -> None:
    swapped = copy(trained)
    known = trained.null_distribution.code
    swapped.null_distribution = replace(
        trained.null_distribution, code=PairDistances(known.distances[::-1], known.shares, known.shapes)
    )
    with pytest.raises(CodebookError, match="bad is damaged"):
        Codebook.from_bytes(swapped.to_bytes(), "bad")


def test_a_changed_byte_is_refused(trained: Codebook, tmp_path: Path) -> None:
    data = bytearray(trained.to_bytes())
    data[-1000] ^= 1
    (tmp_path / "bad.codebook").write_bytes(data)
    with pytest.raises(CodebookError, match=r"bad\.codebook is damaged"):
        Codebook.read(tmp_path / "bad.codebook")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.codebook").write_bytes(content)
    with pytest.raises(CodebookError, match="is not a homing codebook"):
        Codebook.read(tmp_path / "x.codebook")


def test_refuses_another_extractor(codebook: Codebook, extractor) -> None:
    codebook.check(extractor)
    with pytest.raises(CodebookError, match=r"was trained for extractor 'homing-1'.*got 'random'"):
        codebook.check(FakeExtractor())


def test_another_network_of_the_same_name_is_refused_with_a_hint(codebook: Codebook, extractor) -> None:
    class Other:
        name, fingerprint = extractor.name, "0" * 64

    with pytest.raises(CodebookError, match=r"has the same name but other weights.*new collection from the originals"):
        codebook.check(Other())


@pytest.mark.parametrize(
    ("spec", "message"),
    [("IVF16,PQ5x8", "not a FAISS factory"), ("nonsense", "not a FAISS factory"),
        ("NSG16", r"'NSG16' \(IndexNSGFlat\) is of an unsupported family"),
        ("PQ4x4,RFlat", "is of an unsupported family"),
        ("IVF16,RaBitQfs", "is of an unsupported family"),
        ("IVF16(IVF4,Flat),PQ8x4", "is of an unsupported family"),
        ("HNSW16,LSH", "FAISS supports HNSW over PQ, SQ, RaBitQ and Flat only"),
        ("HNSW1,PQ8x4", "has a graph with too few links; expected at least HNSW8"),
        ("IVF16_HNSW7,PQ8x4", "has a graph with too few links"),
        ("SQ8_direct", "SQ8_direct gives nearly all descriptors the same code; choose another spec"),
        ("IVF16,SQ8_direct", "gives nearly all descriptors the same code"),
        ("ITQ16,PQ4x4", "has ITQ or whitening, which cannot be inverted, before codes that are not signs"),
        ("PCAW16,IVF16,Flat", "has ITQ or whitening, which cannot be inverted"),
        ("PCA64,PQ4x4", "'PCA64,PQ4x4' increases 32 dimensions to 64; expected at most 32"),
        ("ITQ64,LSH", "increases 32 dimensions to 64"),
        ("IVF0,PQ4x4", "has a count of 0"),
        ("HNSW0,Flat", "has a count of 0"),
        ("PQ4x12", r"cannot be trained on 1000 descriptors of 32 dimensions: Number of training points \(1000\)"),
     ("IVF2000,PQ4x8", "at least 2000 training descriptors, got 1000; give it more photos, or more crops")],
)  # fmt: skip
def test_specs_that_cannot_be_trained_say_why(spec: str, message: str) -> None:
    with pytest.raises(CodebookError, match=message):
        train(spec)


@pytest.mark.parametrize("spec", ["RQ2x6", "IVF16,PRQ2x2x6", "IMI2x5,PQ4x4"])
def test_faiss_prints_no_warning_about_few_photos(spec: str, capfd: pytest.CaptureFixture[str]) -> None:
    rows = descriptors(1100, dim=16).numpy()
    Codebook.train(rows, spec=spec, extractor=FakeExtractor(), name="test")
    assert capfd.readouterr().err == ""


def test_the_bundled_null_distribution_is_plausible(codebook: Codebook) -> None:
    known = codebook.null_distribution
    assert known.code.shares[0] < 1e-7  # of tens of millions of pairs
    assert known.is_valid
    assert 1.2 < np.interp(0.5, known.code.shares, known.code.distances) < 1.3
    assert np.interp(0.5, known.descriptor.shares, known.descriptor.distances) == pytest.approx(2**0.5, abs=0.02)


@pytest.mark.parametrize(
    ("name", "fingerprint", "distractors_sha256", "count"),
    [
        (
            "homing-1",
            "857f7a2c7eccaf3a7a34a775ee669f768c37acf65db13dcf3779310e9a5f4b39",
            "8ea6758cd86110ec323834e30ffbae534c75f855716f6e512d7738cf6c1735ba",
            118_287,
        ),
        (
            "imagenet-lite0",
            "e95c30ac317309b09aabc9629411986a6beae7b87c661a1dacbdb3a5acbdb15e",
            "2937616cb8d9916355e2219f8c73a0ac7bce3c4beba897d75f515958a5bb2d9a",
            50_000,
        ),
    ],
)
def test_the_bundled_codebooks_never_change(name: str, fingerprint: str, distractors_sha256: str, count: int) -> None:
    book = codebooks.load(name)
    assert (book.name, book.extractor, book.fingerprint) == (name, name, fingerprint)
    data = files("homing.codebooks").joinpath(f"data/{name}.distractors").read_bytes()
    assert hashlib.sha256(data).hexdigest() == distractors_sha256
    distractors = codebooks.bundled_distractors(book)
    assert len(distractors) == len(set(distractors.coco_ids)) == count


def test_only_bundled_codebooks_come_with_distractors(trained: Codebook) -> None:
    with pytest.raises(CodebookError, match="has no distractors; bundled codebooks do"):
        codebooks.bundled_distractors(trained)


def test_a_typo_gets_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'homing-1'"):
        codebooks.load("homing1")


def test_package_data_stays_small() -> None:
    folders = [files("homing.extractors").joinpath("data"), files("homing.codebooks").joinpath("data")]
    assert sum(len(entry.read_bytes()) for folder in folders for entry in folder.iterdir()) < 30e6


@pytest.mark.parametrize("spec", ["IVF16,PQ4x6", "OPQ4,IVF16,PQ4x4", "IVF16,RQ4x4", "IVF16,PQ8x4fsr"])
def test_sampled_codes_have_the_centroid_distances_of_photos(spec: str) -> None:
    codebook, photos = train(spec), descriptors(64, 1)
    centers = codebook.centroids(photos)
    apart = (codebook.sample_reconstructions(codebook.cells(photos), 200) - centers[:, None]).norm(dim=2)
    stored = (codebook.reconstruct(photos) - centers).norm(dim=1)
    assert float(apart.mean()) == pytest.approx(float(stored.mean()), rel=0.15)
    assert apart.std(dim=1).min() > 0


def test_sampled_codes_are_in_the_given_cells() -> None:
    codebook, photos = train("IVF300,PQ4x6"), descriptors(64, 1)  # more cells than one byte can count
    codes = codebook.sample_codes(codebook.cells(photos).numpy(), 3).reshape(64, 3, -1)
    assert codes.shape[2] == codebook.code_size
    np.testing.assert_array_equal(codes[:, :, :2], codebook.encode(photos)[:, None, :2].repeat(3, axis=1))

"""Codebooks from FAISS indexes trained elsewhere, compared with FAISS on the caller's own index."""

from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from tests.conftest import descriptors
from torch import nn

from homing import codebooks
from homing.activation import RECIPES
from homing.activation.optimize import optimize
from homing.codebooks import Codebook
from homing.errors import CodebookError, HomingError
from homing.extractors import NetworkExtractor, describe_images
from homing.indexes import FaissIndex
from homing.indexes.faiss import EF_SEARCH
from homing.objectives import objective_for

DIM = 32
SPECS = [
    *("PQ8x4", "OPQ4,PQ4x4", "IVF16,PQ8x4", "OPQ4,IVF16,PQ4x4", "IVF16,Flat", "IVF16,SQ8", "IVF16,RQ4x4", "SQ8"),
    *("IVF16,PQ8x4fs", "PQ8x4fs", "LSH", "RaBitQ", "IVF16,RaBitQ", "HNSW16,Flat", "RQ4x4", "PCA16,IVF16,Flat"),
    *("ITQ16,LSH", "L2norm,PQ8x4", "L2norm,IVF16,PQ8x4", "RR16,PQ4x4", "OPQ4_16,IVF16,PQ4x4", "IMI2x4,PQ8x4"),
    *("LSQ4x4", "PRQ2x2x4", "PLSQ2x2x4", "IVF16,LSQ4x4", "IVF16,PRQ2x2x4", "IVF16,PLSQ2x2x4"),
    *("HNSW16,PQ8x4", "HNSW16,SQ8", "HNSW16,RaBitQ"),
]


@pytest.fixture(scope="module")
def network() -> NetworkExtractor:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(192, DIM))
    return NetworkExtractor(layers, name="own", size=32, device="cpu")


def faiss_index(spec: str, vectors: int = 0, metric: int = faiss.METRIC_L2) -> faiss.Index:
    """A trained FAISS index with a number of vectors."""
    index = faiss.index_factory(DIM, spec, metric)
    index.train(descriptors(1000).numpy())
    if vectors:
        rows = descriptors(vectors, seed=1).numpy()
        # Codes of LSQ depend on the batch; homing encodes one descriptor at a time.
        for part in np.split(rows, vectors) if "LSQ" in spec else [rows]:
            index.add(part)
    return index


def imported(index: object, network: NetworkExtractor) -> Codebook:
    return Codebook.from_faiss(index, extractor=network, name="own", descriptors=descriptors(500, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
def test_a_search_finds_what_faiss_finds_in_the_index(spec: str, network: NetworkExtractor) -> None:
    index, queries = faiss_index(spec, vectors=300), descriptors(20, seed=3)
    if (ivf := faiss.try_extract_index_ivf(index)) is not None:
        ivf.nprobe = 4
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = EF_SEARCH
    book = imported(index, network)
    assert book.spec == spec.replace("HNSW16,Flat", "HNSW16")
    assert index.ntotal == 300
    assert book.new_faiss().ntotal == 0
    ours = FaissIndex(book)
    ours.add(book.encode(descriptors(300, seed=1)), np.arange(300))
    distances, ids = ours.search(queries, 5, 4 if book.has_cells else None)
    squared, expected = index.search(queries.numpy(), 5)
    np.testing.assert_allclose(distances, np.sqrt(squared), atol=2e-3)
    if spec != "LSH":  # many vectors have the same distance
        assert (ids == expected).mean() > 0.98


def test_a_file_of_an_index_under_ids_gives_the_same_codebook(network: NetworkExtractor, tmp_path: Path) -> None:
    index = faiss_index("IVF16,PQ8x4")
    with_ids = faiss.IndexIDMap2(faiss.clone_index(index))
    with_ids.add_with_ids(descriptors(50, seed=1).numpy(), np.arange(100, 150))
    faiss.write_index(with_ids, str(tmp_path / "mine.faiss"))
    from_file = Codebook.from_faiss(
        tmp_path / "mine.faiss", extractor=network, descriptors=descriptors(500, seed=2).numpy()
    )
    assert (from_file.name, from_file.spec, from_file.extractor) == ("mine", "IVF16,PQ8x4", "own")
    assert from_file.fingerprint == imported(index, network).fingerprint


def test_reading_a_written_file_gives_the_codebook(network: NetworkExtractor, tmp_path: Path) -> None:
    book = imported(faiss_index("OPQ4,IVF16,PQ4x4"), network)
    book.write(tmp_path / "own.codebook")
    again = codebooks.load(tmp_path / "own.codebook")
    assert again.fingerprint == book.fingerprint
    np.testing.assert_array_equal(again.encode(descriptors(20)), book.encode(descriptors(20)))
    again.check(network)


@pytest.mark.parametrize("recipe", ["homing-fast", "paper-fast"])
def test_activation_lowers_its_objective(recipe: str, network: NetworkExtractor) -> None:
    images = [torch.rand(3, 48, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    originals = describe_images(network, images)
    objective = objective_for(imported(faiss_index("IVF16,PQ8x4"), network), originals, RECIPES[recipe].objective)
    changes = optimize(images, extractor=network, objective=objective, recipe=RECIPES[recipe])
    changed = describe_images(network, [image + change for image, change in zip(images, changes, strict=True)])
    assert (objective(changed) < objective(originals)).all()


def test_the_null_distribution_is_that_of_the_descriptors(network: NetworkExtractor) -> None:
    known = imported(faiss_index("IVF16,PQ8x4"), network).null_distribution
    assert np.interp(0.5, known.descriptor.shares, known.descriptor.distances) == pytest.approx(2**0.5, rel=0.05)


def test_bundled_extractors_need_no_descriptors_and_probabilities_of_codes_are_overestimated(
    codebook: Codebook,
) -> None:
    book = Codebook.from_faiss(codebook.new_faiss(), name="again")
    ours, bundled = book.null_distribution, codebook.null_distribution
    assert (book.extractor, book.spec) == ("homing-1", codebook.spec)
    np.testing.assert_array_equal(ours.descriptor.shares, bundled.descriptor.shares)
    at = np.array([0.7, 0.8, 0.9, 1.0, 1.1])
    assert (ours.code.cdf(at) > bundled.code.cdf(at)).all()
    assert (ours.code.cdf(at[2:]) < 4 * bundled.code.cdf(at[2:])).all()


def test_other_extractors_need_descriptors(network: NetworkExtractor) -> None:
    with pytest.raises(CodebookError, match=r"the package has none of extractor 'own'; pass descriptors="):
        Codebook.from_faiss(faiss_index("PQ8x4"), extractor=network)


@pytest.mark.parametrize(
    "spec",
    ["IVF16,PQ8x4fsr", "LSH64r", "RQ1x6_3x4", "IVF16,RQ4x4_Nqint8", "PCAW16,LSH", "ITQ16,LSH", "L2norm,IVF16,PQ8x4"],
)
def test_the_spec_is_the_factory_string(spec: str, network: NetworkExtractor) -> None:
    assert imported(faiss_index(spec), network).spec == spec


def test_a_transform_without_a_factory_string_is_given_by_its_class(network: NetworkExtractor, tmp_path: Path) -> None:
    faiss.write_index(faiss_index("OPQ4,PQ4x4"), str(tmp_path / "opq.faiss"))  # written as a plain matrix
    assert imported(tmp_path / "opq.faiss", network).spec == "LinearTransform32,PQ4x4"


def sharded() -> faiss.Index:
    """An index that FAISS cannot write."""
    shards = faiss.IndexShards(DIM)
    shards.add_shard(faiss.IndexFlatL2(DIM))
    return shards


def untrained() -> faiss.Index:
    return faiss.index_factory(DIM, "IVF16,PQ8x4")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (untrained, "is not trained; call index.train"),
        (lambda: faiss_index("IVF16,Flat", metric=faiss.METRIC_INNER_PRODUCT), "does not compare by L2 distance"),
        (sharded, "FAISS cannot copy 'IndexShards': "),
        (lambda: faiss.IndexBinaryFlat(DIM), "binary indexes are not supported; supported are PQ, SQ"),
        (lambda: faiss_index("PQ4x4,RFlat"), "is of an unsupported family"),
        (lambda: faiss_index("NSG16", vectors=200), "is of an unsupported family"),
        (lambda: faiss.IndexFlatL2(16), "the index has 16 dimensions, descriptors of extractor 'own' have 32"),
        (lambda: "missing.faiss", "no such file: missing.faiss"),
        (lambda: 7, "must be a faiss.Index or the path of a file of one, got int"),
    ],
)
def test_indexes_that_cannot_be_used_are_refused_with_the_reason(make, message: str, network: NetworkExtractor) -> None:
    with pytest.raises(CodebookError, match=message):
        imported(make(), network)


def test_other_files_are_refused(network: NetworkExtractor, tmp_path: Path) -> None:
    (tmp_path / "x.faiss").write_bytes(b"hello, this is no index")
    with pytest.raises(CodebookError, match="is not a FAISS index"):
        imported(tmp_path / "x.faiss", network)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.rand(9, 8), "shape"),
        (torch.rand(9, DIM) + 1, "unit norm"),
        (torch.rand(0, DIM), "at least 2 descriptors are needed, got 0"),
    ],
)
def test_descriptors_of_another_kind_are_refused(rows: torch.Tensor, message: str, network: NetworkExtractor) -> None:
    with pytest.raises(CodebookError, match=message):
        Codebook.from_faiss(faiss_index("PQ8x4"), extractor=network, descriptors=rows)


def test_wrong_extractors_are_rejected() -> None:
    with pytest.raises(HomingError, match=r"name, file or as an Extractor.*got Linear"):
        Codebook.from_faiss(faiss_index("PQ8x4"), extractor=nn.Linear(3, 3))


def test_a_codebook_loads_as_itself(codebook: Codebook) -> None:
    assert codebooks.load(codebook) is codebook
    with pytest.raises(CodebookError, match="by name, file or as a Codebook, got int"):
        codebooks.load(7)

"""Margin objectives: choice by family, values, gradients and optimization."""

from itertools import product

import numpy as np
import pytest
import torch
from tests.collection import test_families
from tests.conftest import descriptors, train
from tests.objectives import test_objectives

from homing.codebooks import Codebook
from homing.objectives import (
    CellMargin,
    CodewordMargin,
    Reconstruction,
    SignMargin,
    has_objective,
    objective_for,
)

MARGINS = {
    CellMargin: [
        "IVF16,PQ4x6", "OPQ4,IVF16,PQ4x4", "IVF16,PQ8x4fs", "IVF16,Flat", "IVF16,RaBitQ", "IVF16,SQ8", "IVF16,RQ4x4",
        "IVF16,LSQ4x4", "IVF16,PRQ2x2x4", "IVF16,PQ8x4fsr",
        "PCA16,IVF16,Flat", "IVF16_HNSW8,Flat", "IVF4,Flat", "IVF4,PQ8x4fs", "IVF4,RaBitQ",
    ],
    CodewordMargin: ["PQ4x6", "OPQ4,PQ4x4", "OPQ4_16,PQ4x4", "PQ8x4fs", "HNSW8,PQ8x4"],
    SignMargin: [
        "LSH", "LSH16", "LSH16rt", "PCA16,LSH", "PCAW16,LSH", "PCA16,L2norm,LSHt", "ITQ16,LSH", "RaBitQ", "RR16,RaBitQ",
        "ITQ16,RaBitQ", "HNSW8,RaBitQ",
    ],
    Reconstruction: ["SQ4", "RQ4x4", "LSQ4x4", "HNSW8,SQ4"],
}  # fmt: skip
SPECS = [(spec, kind) for kind, specs in MARGINS.items() for spec in specs]
OURS = MARGINS[CellMargin] + MARGINS[CodewordMargin]


@pytest.fixture(scope="module", params=OURS)
def codebook(request: pytest.FixtureRequest) -> Codebook:
    return train(request.param)


@pytest.mark.parametrize(("spec", "kind"), SPECS)
def test_the_codebook_chooses_the_objective(spec: str, kind: type) -> None:
    assert type(objective_for(train(spec), descriptors(2, 1), kind="margin")) is kind


def test_every_family_has_a_margin_objective() -> None:
    known = {spec for spec, _ in SPECS}
    tried = {spec for spec, _ in test_objectives.SPECS} | {*test_families.SPECS}
    assert {spec for spec in tried - known if has_objective(train(spec))} == set()


def test_the_gradient_is_correct(codebook: Codebook) -> None:
    objective = objective_for(codebook, descriptors(3, 3), kind="margin")
    changed = descriptors(3, 4).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: objective(rows).double(), changed, eps=1e-6, atol=1e-4)


def test_gradient_descent_lowers_the_objective(codebook: Codebook) -> None:
    originals = descriptors(8, 5)
    objective = objective_for(codebook, originals, kind="margin")
    changed = originals.clone().requires_grad_()
    (step,) = torch.autograd.grad(objective(changed).sum(), changed)
    assert (objective(originals - 0.02 * step) < objective(originals)).all()


def test_the_objective_is_lowest_for_the_photo_itself(codebook: Codebook) -> None:
    """In a batch, each photo's objective is lowest for the photo itself."""
    originals = descriptors(6, 1)
    objective = objective_for(codebook, originals, kind="margin")
    losses = torch.stack([objective(row.expand_as(originals)) for row in originals])
    assert losses.argmin(dim=0).tolist() == [*range(6)]


def cross_entropy(squared: np.ndarray, own: int, temperature: float) -> float:
    """T times the cross-entropy of −squared/T."""
    shares = np.exp(-squared / temperature)
    return float(-temperature * np.log(shares[own] / shares.sum()))


def test_cell_margin_equals_the_formula() -> None:
    codebook = train("IVF16,PQ4x6")
    originals, changed = descriptors(5, 1), descriptors(5, 2)
    index = codebook.new_faiss()
    centroids = index.quantizer.reconstruct_n(0, 16)
    stored = codebook.reconstruct(originals).numpy()
    rows = changed.double().numpy()
    margins = [
        cross_entropy(np.square(row - centroids).sum(1), cell, 0.05)
        for row, cell in zip(rows, codebook.cells(originals), strict=True)
    ]
    sampled = codebook.sample_reconstructions(codebook.cells(originals), 64).numpy()
    code_margins = [
        cross_entropy(np.square(row - [own, *others]).sum(1), 0, 0.05)
        for row, own, others in zip(rows, stored, sampled, strict=True)
    ]
    expected = margins + 0.2 * np.array(code_margins)
    objective = objective_for(codebook, originals, kind="margin")
    np.testing.assert_allclose(objective(changed), expected + 0.5 * np.square(rows - stored).sum(1), rtol=1e-4)
    np.testing.assert_allclose(objective.copy_loss(changed), expected, rtol=1e-4)


@pytest.mark.parametrize("spec", ["IVF16,Flat", "IVF16,SQ8", "IVF16,RaBitQ", "IVF16,PQ8x4fs"])
def test_without_sampled_codes_the_copy_loss_uses_cells(spec: str) -> None:
    codebook, originals, changed = train(spec), descriptors(5, 1), descriptors(5, 2)
    centroids, rows = codebook.all_centroids.numpy(), changed.double().numpy()
    cells = codebook.cells(originals)
    margins = [
        cross_entropy(np.square(row - centroids).sum(1), cell, 0.05) for row, cell in zip(rows, cells, strict=True)
    ]
    np.testing.assert_allclose(objective_for(codebook, originals, kind="margin").copy_loss(changed), margins, rtol=1e-4)


@pytest.mark.parametrize("spec", ["PQ4x6", "SQ4", "LSH"])
def test_without_cells_the_copy_loss_is_the_loss(spec: str) -> None:
    objective = objective_for(train(spec), descriptors(5, 1), kind="margin")
    assert torch.equal(objective.copy_loss(descriptors(5, 2)), objective(descriptors(5, 2)))


@pytest.mark.parametrize("spec", ["PQ4x3", "OPQ4_16,PQ4x3", "PQ4x4fs"])
def test_codeword_margin_is_the_cross_entropy_over_all_codes(spec: str) -> None:
    codebook = train(spec)
    originals, changed = descriptors(5, 1), descriptors(5, 2)
    codewords = codebook.codewords.numpy()
    every = np.array(list(product(range(codewords.shape[1]), repeat=4)))
    codes = codewords[np.arange(4), every].reshape(len(every), -1)
    stored = codebook.reconstruct(originals)
    rotated, targets = codebook.transform(changed).astype(np.float64), codebook.transform(stored)
    margins = [
        cross_entropy(np.square(row - codes).sum(1), np.abs(target - codes).sum(1).argmin(), 0.05 / 4)
        for row, target in zip(rotated, targets, strict=True)
    ]
    expected = margins + 0.5 * np.square((changed - stored).numpy()).sum(1)
    np.testing.assert_allclose(objective_for(codebook, originals, kind="margin")(changed), expected, rtol=1e-4)

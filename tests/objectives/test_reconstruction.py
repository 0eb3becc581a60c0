import pytest
import torch
from tests.conftest import descriptors, train

from homing.codebooks import Codebook
from homing.errors import CodebookError
from homing.objectives import objective_for


@pytest.fixture(scope="module", params=["IVF16,PQ4x8", "PQ4x8", "OPQ4,PQ4x8", "OPQ4,IVF16,PQ4x8"])
def codebook(request: pytest.FixtureRequest) -> Codebook:
    return train(request.param)


def test_is_the_squared_distance_to_what_is_stored(codebook: Codebook) -> None:
    originals, moved = descriptors(5, 1), descriptors(5, 2)
    index = codebook.new_faiss()
    stored = torch.from_numpy(index.sa_decode(index.sa_encode(originals.numpy())))
    torch.testing.assert_close(objective_for(codebook, originals)(moved), ((moved - stored) ** 2).sum(1))


def test_its_gradient_is_right(codebook: Codebook) -> None:
    objective = objective_for(codebook, descriptors(3, 3))
    moved = descriptors(3, 4).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: objective(rows).double(), moved, eps=1e-6, atol=1e-4)


def test_following_it_lowers_the_distance(codebook: Codebook) -> None:
    originals = descriptors(8, 5)
    objective = objective_for(codebook, originals)
    moved = originals.clone().requires_grad_()
    (step,) = torch.autograd.grad(objective(moved).sum(), moved)
    assert (objective(originals - 0.1 * step) < objective(originals)).all()


@pytest.mark.parametrize("spec", ["LSH", "IVF16,Flat", "SQ8"])
def test_a_family_without_an_objective_says_so(spec: str) -> None:
    book = train(spec)
    with pytest.raises(CodebookError, match="cannot be activated for spec"):
        objective_for(book, descriptors(2, 1))

"""Whitening, on vectors whose copies differ mostly in one direction."""

import torch
from torch import nn

from homing.training.descriptors import whiten


def spread(head: nn.Linear, originals: torch.Tensor, copies: torch.Tensor) -> torch.Tensor:
    """The change of copies in each dimension, of unit norm, largest first."""
    with torch.no_grad():
        differences = nn.functional.normalize(head(copies), dim=1) - nn.functional.normalize(head(originals), dim=1)
    return torch.linalg.eigvalsh(differences.T @ differences / len(differences)).flip(0)


def test_directions_in_which_copies_differ_are_scaled_down() -> None:
    torch.manual_seed(0)
    head = nn.utils.parametrizations.orthogonal(nn.Linear(8, 8))
    nn.utils.parametrize.remove_parametrizations(head, "weight")
    originals = torch.randn(4000, 8)
    copies = originals + 0.1 * torch.randn(4000, 8) * torch.tensor([2.0, 1, 1, 0.5, 0.5, 0.5, 0.2, 0.2])
    before = spread(head, originals, copies)
    with torch.no_grad():
        whiten(head, head(originals), head(copies), power=0.5)
    after = spread(head, originals, copies)
    assert before[0] / before[-1] > 10
    assert after[0] / after[-1] < 0.2 * before[0] / before[-1]
    with torch.no_grad():
        assert head(originals).mean(dim=0).abs().max() < 1e-4


def test_copies_that_do_not_differ_change_nothing() -> None:
    head = nn.Linear(5, 8)
    was = head.weight.detach().clone()
    whiten(head, torch.ones(4, 8), torch.ones(4, 8), power=0.5)
    assert torch.allclose(head.weight, was, atol=1e-5)


def test_power_zero_changes_no_direction() -> None:
    torch.manual_seed(0)
    head = nn.Linear(8, 6)
    was = head.weight.detach().clone()
    whiten(head, torch.randn(100, 6), torch.randn(100, 6), power=0.0)
    assert torch.allclose(head.weight, was, atol=1e-5)

"""The variants of a query that a search can try: quarter turns and the mirror image."""

from __future__ import annotations

import torch
from torch import Tensor

VARIANTS = 5


def query_variants(network_input: Tensor) -> list[Tensor]:
    """A (3, S, S) square as it is, in its three other quarter turns, and mirrored."""
    # The mirror images of the turns would cost three more passes of the network. A search of several cells finds
    # mirrored copies that lie on their side without them; with one probe they add a sixth of what these five add.
    return [*(torch.rot90(network_input, number, (1, 2)) for number in range(4)), network_input.flip(2)]

"""A query in its query_variants: copies are mirrored, or laid on their side."""

from __future__ import annotations

import torch
from torch import Tensor

VARIANTS = 5


def query_variants(network_input: Tensor) -> list[Tensor]:
    """A (3, S, S) square as it is, in its three other quarter query_variants, and mirrored."""
    # The mirror images of the query_variants would cost three more passes of the network. Who looks into several cells finds
    # mirrored copies that lie on their side without them, and with one probe they add a sixth of what these five do.
    return [*(torch.rot90(network_input, number, (1, 2)) for number in range(4)), network_input.flip(2)]

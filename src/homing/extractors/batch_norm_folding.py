"""Batch norms folded into the convolutions before them: the same network in fewer passes over memory."""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

_ROUNDING = 1e-4  # relative error of the output that is accepted


@torch.no_grad()
def fold_batch_norms(network: nn.Module, example: Tensor) -> nn.Module:
    """A copy with batch norms folded into convolutions; the network itself if nothing can be folded.

    `example` (1, 3, S, S) is run through the network to see which norm follows which convolution.
    """
    if isinstance(network, torch.jit.ScriptModule) or not any(
        isinstance(each, nn.Conv2d) for each in network.modules()
    ):
        return network
    from timm.layers import BatchNormAct2d  # imports as slowly as PyTorch itself

    pairs = _pairs(network, example, (nn.BatchNorm2d, BatchNormAct2d))
    if not pairs:
        return network
    folded = copy.deepcopy(network)
    for convolution, norm in pairs:
        writer: Any = folded.get_submodule(convolution)
        reader: Any = folded.get_submodule(norm)
        folded.set_submodule(convolution, fuse_conv_bn_eval(writer, reader))
        folded.set_submodule(norm, reader.act if isinstance(reader, BatchNormAct2d) else nn.Identity())
    before, after = network(example), folded(example)
    same = (before - after).norm() <= _ROUNDING * before.norm()
    return folded if same else network  # the output of a convolution is also used elsewhere


def _pairs(network: nn.Module, example: Tensor, norms: tuple[type[nn.Module], ...]) -> list[tuple[str, str]]:
    """The names of convolutions and of the norms that follow them; each is used once."""
    written: dict[int, str] = {}
    pairs: list[tuple[str, str]] = []
    calls = Counter[str]()
    alive: list[Tensor] = []  # keeps ids of tensors unique during the run

    def on_call(name: str, module: nn.Module, inputs: tuple[Tensor, ...], result: Tensor) -> None:
        calls[name] += 1
        if isinstance(module, nn.Conv2d):
            written[id(result)] = name
            alive.append(result)
        elif id(inputs[0]) in written:
            pairs.append((written[id(inputs[0])], name))

    with ExitStack() as hooks:
        for name, module in network.named_modules():
            if isinstance(module, nn.Conv2d) or type(module) in norms:  # subclasses may do more than normalize
                hooks.enter_context(module.register_forward_hook(partial(on_call, name)))
        network(example)
    return [pair for pair in pairs if all(calls[name] == 1 for name in pair)]

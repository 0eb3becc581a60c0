"""Folding of batch norms into convolutions."""

import subprocess
import sys

import pytest
import timm
import torch
from torch import nn

from homing import extractors
from homing.extractors.base import fold_batch_norms


@pytest.fixture
def example() -> torch.Tensor:
    return torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def with_random_norms(network: nn.Module) -> nn.Module:
    """Set random statistics and parameters of all norms, as after training."""
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.3, 0.3, generator=generator)
            module.running_var.uniform_(0.5, 2.0, generator=generator)
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.bias.data.uniform_(-0.3, 0.3, generator=generator)
    return network.eval()


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet18", "mobilenetv3_small_050"])
def test_every_norm_of_common_networks_is_folded(name: str, example: torch.Tensor) -> None:
    network = with_random_norms(timm.create_model(name, pretrained=False, num_classes=0))
    folded = fold_batch_norms(network, example)
    assert norms(network) > 10
    assert norms(folded) == 0
    others = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(folded(others), network(others), rtol=1e-3, atol=1e-4)


def test_a_norm_after_a_shared_output_is_not_folded(example: torch.Tensor) -> None:
    class Skipping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            written = self.convolution(images)
            return self.norm(written) + written

    network = with_random_norms(Skipping())
    assert fold_batch_norms(network, example) is network


def test_a_convolution_used_twice_is_not_folded(example: torch.Tensor) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(3, 3, 3)
            self.first, self.second = nn.BatchNorm2d(3), nn.BatchNorm2d(3)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.second(self.convolution(self.first(self.convolution(images))))

    network = with_random_norms(Shared())
    assert fold_batch_norms(network, example) is network


def test_folding_the_default_network_keeps_its_output() -> None:
    extractor = extractors.load("homing-1", device="cpu")
    given = extractor.unfolded()
    images = torch.rand(2, 3, extractor.size, extractor.size)
    assert norms(extractor._network) == 0 < norms(given._network)
    assert given.fingerprint == extractor.fingerprint
    torch.testing.assert_close(extractor(images), given(images), rtol=0, atol=1e-5)


def test_networks_without_convolutions_import_only_pytorch() -> None:
    script = (
        "import sys\nfrom torch import nn\nfrom homing.collection import Collection\n"
        "from homing.extractors import NetworkExtractor\n"
        "NetworkExtractor(nn.AdaptiveAvgPool2d(2), name='tiny', size=8, device='cpu')\n"
        "sys.exit('timm' in sys.modules or 'torchvision' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

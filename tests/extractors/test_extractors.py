import hashlib
import warnings
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from homing import extractors
from homing.errors import HomingError, UnknownNameError
from homing.extractors import Extractor, NetworkExtractor, describe_images
from homing.extractors.descriptor_network import DescriptorNetwork, NetworkConfig, write_network


def tiny() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))


def torchscript(folder: Path, network: nn.Module | None = None) -> Extractor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit")  # deprecated, but what authors publish
        scripted = torch.jit.script(network or tiny())
    scripted.save(str(folder / "tiny.pt"))
    return extractors.load(str(folder / "tiny.pt"), device="cpu")


def trained(folder: Path) -> Extractor:
    half = (0.5, 0.5, 0.5)
    config = NetworkConfig(trunk="tf_efficientnet_lite0", dim=16, size=96, mean=half, std=half)
    write_network(DescriptorNetwork(config), config, folder / "tiny.safetensors")
    return extractors.load(str(folder / "tiny.safetensors"), device="cpu")


GENERAL = {"timm:NAME", "FILE.pt", "FILE.safetensors"}
# Networks with downloaded weights are tested in test_published.py.
REGISTERED = [name for name in extractors.available() if name not in GENERAL | set(extractors.fetched())]
USER_EXTRACTORS = {"torchscript": torchscript, "trained": trained}


@pytest.fixture(params=[*REGISTERED, "module", *USER_EXTRACTORS])
def any_extractor(request: pytest.FixtureRequest, tmp_path: Path) -> Extractor:
    """Every registered extractor, and networks of users."""
    if request.param == "module":
        return NetworkExtractor(tiny(), name="tiny", size=64, device="cpu")
    if request.param in USER_EXTRACTORS:
        return USER_EXTRACTORS[request.param](tmp_path)
    return extractors.load(request.param, device="cpu")


def test_descriptors_have_unit_length_and_the_dimension(any_extractor: Extractor) -> None:
    descriptors = any_extractor(torch.rand(3, 3, any_extractor.size, any_extractor.size))
    assert descriptors.shape == (3, any_extractor.dim)
    torch.testing.assert_close(descriptors.norm(dim=1), torch.ones(3))


def test_descriptors_do_not_depend_on_the_batch(any_extractor: Extractor) -> None:
    images = torch.rand(3, 3, any_extractor.size, any_extractor.size)
    alone = torch.cat([any_extractor(image[None]) for image in images])
    torch.testing.assert_close(any_extractor(images), alone, atol=1e-5, rtol=1e-4)


def test_gradients_reach_the_pixels_at_full_size(any_extractor: Extractor) -> None:
    image = torch.rand(3, 150, 210, requires_grad=True)
    any_extractor(any_extractor.resize(image)[None])[0, 0].backward()
    assert image.grad is not None
    assert (image.grad != 0).float().mean() > 0.5


def test_images_of_mixed_sizes_are_described_together(any_extractor: Extractor) -> None:
    images = [torch.rand(3, 40, 300), torch.rand(3, 200, 100)]
    both = describe_images(any_extractor, images)
    torch.testing.assert_close(both[1:], describe_images(any_extractor, images[1:]), atol=1e-5, rtol=1e-4)


def test_the_fingerprint_covers_weights_and_preprocessing() -> None:
    first = NetworkExtractor(tiny(), name="a", size=64, device="cpu")
    assert NetworkExtractor(tiny(), name="b", size=64, device="cpu").fingerprint == first.fingerprint
    other = tiny()
    with torch.no_grad():
        next(other.parameters())[0] += 1e-3
    assert NetworkExtractor(other, name="a", size=64, device="cpu").fingerprint != first.fingerprint
    assert NetworkExtractor(tiny(), name="a", size=96, device="cpu").fingerprint != first.fingerprint


@pytest.mark.parametrize(
    ("name", "sha256", "fingerprint"),
    [
        (
            "homing-1",
            "b788462d51f69b6940bbf2d8c8b000d9fc0ef2a5f73f42c66117c122d9c8f86a",
            "74dea10e3dcac10749385f7a0f11afa06caaf52c96f2c90d2cb5b223d1fe78e4",
        ),
        (
            "imagenet-lite0",
            "c37940a2f7426a79e57b5c5f614566c842b2d6309300cae4636d33e1024e5d51",
            "499a31dc17e9d3123633a1b871d42cf1b5ba359519c25fffa285a2a71d5ff2b1",
        ),
    ],
)
def test_the_bundled_weights_never_change(name: str, sha256: str, fingerprint: str) -> None:
    data = files("homing.extractors").joinpath(f"data/{name}.safetensors").read_bytes()
    assert hashlib.sha256(data).hexdigest() == sha256
    assert extractors.load(name, device="cpu").fingerprint == fingerprint


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, None])
def test_a_file_that_is_no_trained_network_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "net.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        HomingError, match="cannot read the network" if content is None else "was not written by homing"
    ):
        extractors.load(str(path))
    imagenet = files("homing.extractors").joinpath("data/imagenet-lite0.safetensors").read_bytes()
    path.write_bytes(imagenet)
    with pytest.raises(HomingError, match="was not written by homing"):
        extractors.load(str(path))


def test_a_typo_gets_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'imagenet-lite0'"):
        extractors.load("imagenet-lite")


def test_an_unknown_timm_model_gets_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'resnet50'"):
        extractors.load("timm:resnet5O")


def test_an_unknown_set_of_timm_weights_gets_a_hint() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'convnext_atto\.d2_in1k'"):
        extractors.load("timm:convnext_atto.d2_in21k")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dim", "size", "mean"),
    [
        ("resnet10t", 512, 176, 0.485),
        ("convnext_atto.d2_in1k", 320, 224, 0.485),
        ("vit_small_patch14_dinov2.lvd142m", 384, 518, 0.485),
        ("vit_small_patch16_dinov3.lvd1689m", 384, 256, 0.485),
        ("vit_base_patch16_siglip_224.webli", 768, 224, 0.5),
    ],
)
def test_timm_models_load_by_name(name: str, dim: int, size: int, mean: float, monkeypatch: pytest.MonkeyPatch) -> None:
    import timm

    create = timm.create_model
    # Weights cannot be downloaded in a test; everything else is real.
    monkeypatch.setattr(
        timm, "create_model", lambda name, pretrained, **options: create(name, pretrained=False, **options)
    )
    monkeypatch.setattr("homing.extractors.external.model_info", lambda *_, **__: None)
    loaded = extractors.load(f"timm:{name}", device="cpu")
    assert (loaded.name, loaded.dim, loaded.size) == (f"timm:{name}", dim, size)
    assert loaded._mean[0].item() == pytest.approx(mean)


def test_a_torchscript_file_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torchscript(tmp_path)
    monkeypatch.chdir(tmp_path)
    loaded = extractors.load("tiny.pt", device="cpu")
    monkeypatch.chdir("/")
    assert extractors.load(loaded.name, device="cpu").fingerprint == loaded.fingerprint


def test_a_file_that_is_no_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HomingError, match="no such TorchScript file"):
        extractors.load(str(tmp_path / "missing.pt"))
    (tmp_path / "text.pt").write_text("hello")
    torch.save(tiny().state_dict(), tmp_path / "weights.pt")
    for name in ("text.pt", "weights.pt"):
        with pytest.raises(HomingError, match=r"is not a TorchScript file; .*: homing extractors fetch NAME") as raised:
            extractors.load(str(tmp_path / name))
        assert "\n" not in str(raised.value)


class TwoOutputs(nn.Module):
    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        return pixels.mean(dim=(2, 3)), pixels


class BatchMean(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.mean()


class FirstOnly(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return pixels[:1].mean(dim=(2, 3))


class FixedSize(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.mean(dim=1).view(-1, 224 * 224)


class Raises(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        assert pixels.shape[2] == 224, "needs 224 pixels"
        return pixels.mean(dim=(2, 3))


class WithoutGradient(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.detach().mean(dim=(2, 3))


class NanOutput(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.mean(dim=(2, 3)) * torch.nan


@pytest.mark.parametrize("network", [TwoOutputs, BatchMean, FirstOnly, FixedSize, Raises, WithoutGradient, NanOutput])
def test_a_script_that_is_no_descriptor_network_is_refused(network: type[nn.Module], tmp_path: Path) -> None:
    with pytest.raises(
        HomingError, match=r"tiny\.pt does not give every photo of 288 px a descriptor and a gradient"
    ) as raised:
        torchscript(tmp_path, network())
    assert "\n" not in str(raised.value)

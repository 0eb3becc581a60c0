"""Networks with published weights, tested from file to descriptor with random weights in the published layout."""

import warnings
from pathlib import Path

import pytest
import torch
from published_files import PUBLISHED
from torch import nn

from homing import extractors
from homing.errors import HomingError, UnknownNameError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_network_equals_the_network_of_its_authors(name: str, tmp_path: Path) -> None:
    published = PUBLISHED[name]()
    torch.save(published.state, tmp_path / "downloaded")
    extractors.fetch(name, file=tmp_path / "downloaded")
    extractor = extractors.load(name, device="cpu")
    assert (extractor.name, extractor.dim, extractor.size) == (name, published.dim, published.size)
    if name != "dino_vits16":  # its position embeddings are for one size; small images are faster for the others
        extractor.size = 64
    images = torch.rand(2, 3, extractor.size, extractor.size)
    images[1] *= 0.1  # very different from the other image, even for random weights
    with torch.no_grad():
        theirs = published(images)
    image = images[:1].requires_grad_()
    ours = extractor(image)
    assert (ours[0] - theirs[0]).norm() < 0.01 * (theirs[1] - theirs[0]).norm()
    ours[0, 0].backward()
    assert image.grad is not None
    assert (image.grad != 0).float().mean() > 0.9


def test_every_published_network_is_available_and_tested() -> None:
    assert set(PUBLISHED) | {"sscd_disc_advanced"} == set(extractors.fetched()) <= set(extractors.available())


def test_a_missing_download_error_names_the_command() -> None:
    with pytest.raises(HomingError, match="run: homing extractors fetch sscd_disc_mixup"):
        extractors.load("sscd_disc_mixup")
    with pytest.raises(UnknownNameError, match="did you mean 'sscd_disc_mixup'"):
        extractors.fetch("sscd_disc_mixpu")


def test_a_torchscript_file_is_refused_without_warnings(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        torch.jit.script(nn.Linear(2, 2)).save(str(tmp_path / "script.pt"))
        remarks.clear()
        with pytest.raises(HomingError, match="does not hold the weights of dino_r50, published at https"):
            extractors.fetch("dino_r50", file=tmp_path / "script.pt")
    assert not remarks


@pytest.mark.parametrize(
    ("name", "content"),
    [*(("isc_dt1", content) for content in (5, [5], None, "text")), ("sscd_disc_mixup", {5: torch.zeros(1)})],
)
def test_a_file_of_another_type_is_refused(name: str, content: object, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "other.pt")
    with pytest.raises(HomingError, match=f"does not hold the weights of {name}"):
        extractors.fetch(name, file=tmp_path / "other.pt")


def test_a_file_of_another_network_is_refused(tmp_path: Path, cache: Path) -> None:
    other = {"conv1.weight": torch.zeros(64, 3, 7, 7)}
    torch.save(other, tmp_path / "other.pt")
    for name in ("sscd_disc_mixup", "isc_dt1"):
        with pytest.raises(HomingError, match=f"does not hold the weights of {name}"):
            extractors.fetch(name, file=tmp_path / "other.pt")
    assert not [path for path in cache.iterdir() if path.suffix != ".lock"]
    assert not any(extractors.fetched().values())

import sys
from pathlib import Path

import pytest
import torch

from homing.errors import HomingError
from homing.perception.quality import load_lpips


@pytest.mark.filterwarnings("ignore::UserWarning:torchvision")  # from the authors' code
def test_equals_the_authors_code_and_grows_with_noise(
    torch_home: Path, flower, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lpips

    monkeypatch.setenv("TORCH_HOME", str(torch_home))
    distance, image = load_lpips(), flower.pixels()
    noise = torch.randn_like(image)
    little, much = ((image + strength * noise).clamp(0, 1) for strength in (0.02, 0.2))
    assert distance(image, image) == 0
    assert 0 < distance(image, little) < distance(image, much)
    theirs = lpips.LPIPS(net="alex", verbose=False)
    with torch.no_grad():
        assert distance(image, much) == pytest.approx(float(theirs(2 * image[None] - 1, 2 * much[None] - 1)), rel=1e-4)


def test_missing_package_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lpips", None)
    with pytest.raises(HomingError, match=r"pip install 'homing\[lpips\]'"):
        load_lpips()


def test_missing_weights_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # no server listens there
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(HomingError) as raised:
        load_lpips()
    assert "could not be downloaded" in str(raised.value)
    assert f"put it at {tmp_path}/hub/checkpoints/alexnet" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_damaged_weights_error_names_the_file(
    tmp_path: Path, torch_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = (torch_home / "hub" / "checkpoints").iterdir()
    damaged = tmp_path / "hub" / "checkpoints" / file.name
    damaged.parent.mkdir(parents=True)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for data in (b"", b"hello", file.read_bytes()[:-1000]):
        damaged.write_bytes(data)
        with pytest.raises(HomingError, match=f"are damaged; remove {damaged}"):
            load_lpips()

"""`homing extractors fetch` on the command line."""

import json
from pathlib import Path

import pytest
import timm
import torch
from tests.cli.commands import installed


def test_fetch_without_internet_names_address_and_option(tmp_path: Path) -> None:
    no_internet = {"https_proxy": "http://127.0.0.1:9", "HOMING_CACHE": str(tmp_path)}
    (line,) = installed("extractors", "fetch", "dino_r50", code=2, **no_internet).stderr.splitlines()
    assert "https://dl.fbaipublicfiles.com/dino/dino_resnet50_pretrain/" in line and "--file FILE" in line
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.slow
def test_a_timm_model_without_internet_is_one_error_line(photos: Path, tmp_path: Path) -> None:
    """timm itself retries for a minute and prints more."""
    no_internet = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    command = ("codebook", "train", photos, "--extractor", "timm:resnet10t", "--out", tmp_path / "b.codebook")
    (line,) = installed(*command, code=2, **no_internet).stderr.splitlines()
    assert "cannot get the weights of timm model 'resnet10t'" in line and f"copy the folder {tmp_path}" in line


@pytest.mark.slow
def test_fetch_from_a_downloaded_file(tmp_path: Path) -> None:
    downloaded, cache = tmp_path / "downloaded.pth", {"HOMING_CACHE": str(tmp_path / "cache")}
    torch.save(timm.create_model("vit_small_patch16_224", num_classes=0).state_dict(), downloaded)
    assert (
        "dino_vits16 is fetched"
        in installed("extractors", "fetch", "dino_vits16", "--file", downloaded, **cache).stdout
    )
    listed = json.loads(installed("extractors", "--json", **cache).stdout)
    weights = {each["name"]: each["weights"] for each in listed}
    assert (weights["dino_vits16"], weights["dino_r50"], weights["homing-1"]) == ("fetched", "not fetched", "")

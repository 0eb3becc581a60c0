"""homing extractors fetch, as a person calls it."""

import json
from pathlib import Path

import timm
import torch
from tests.cli.commands import installed


def test_fetching_without_a_network_says_what_to_do(tmp_path: Path) -> None:
    nobody = {"https_proxy": "http://127.0.0.1:9", "HOMING_CACHE": str(tmp_path)}
    (line,) = installed("extractors", "fetch", "dino_r50", code=2, **nobody).stderr.splitlines()
    assert "https://dl.fbaipublicfiles.com/dino/dino_resnet50_pretrain/" in line and "--file FILE" in line
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_a_timm_model_without_a_network_is_said_at_once(photos: Path, tmp_path: Path) -> None:
    """One line: timm's way says more, for a minute."""
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    asked = ("codebook", "train", photos, "--extractor", "timm:resnet10t", "--out", tmp_path / "b.codebook")
    (line,) = installed(*asked, code=2, **nobody).stderr.splitlines()
    assert "cannot get the weights of timm model 'resnet10t'" in line and f"bring the folder {tmp_path}" in line


def test_a_file_already_downloaded_is_taken_and_listed(tmp_path: Path) -> None:
    downloaded, cache = tmp_path / "downloaded.pth", {"HOMING_CACHE": str(tmp_path / "cache")}
    torch.save(timm.create_model("vit_small_patch16_224", num_classes=0).state_dict(), downloaded)
    assert (
        "dino_vits16 is fetched"
        in installed("extractors", "fetch", "dino_vits16", "--file", downloaded, **cache).stdout
    )
    listed = json.loads(installed("extractors", "--json", **cache).stdout)
    weights = {each["name"]: each["weights"] for each in listed}
    assert (weights["dino_vits16"], weights["dino_r50"], weights["homing-1"]) == ("fetched", "not fetched", "")

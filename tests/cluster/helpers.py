"""Helpers of the cluster tests: a network in a file, which every process loads by its name, and checks."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from tests.bench.helpers import small_network

from homing import extractors
from homing.codebooks import Codebook
from homing.collection import Collection
from homing.extractors import describe_images

MEMORY = 150 * 2**20  # for objects


def small_codebook(folder: Path, spec: str = "IVF8,PQ12x4") -> Codebook:
    """A codebook trained on noise, for a network that scales photos down to 6 × 6 pixels."""
    network = extractors.load(str(small_network(folder)), "cpu")
    noise = torch.rand(1000, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    squares = torch.nn.functional.interpolate(noise, (48, 48), mode="bicubic").clamp(0, 1)
    return Codebook.train(describe_images(network, list(squares)).numpy(), spec=spec, extractor=network, name="small")


def references(collection: Collection) -> list[tuple[int, str, str, bytes, bytes]]:
    """The rows of all references: ids, hashes, sources, codes, descriptors."""
    return collection.storage._fetch_all(
        "SELECT id, sha256, source, code, vector FROM photos JOIN descriptors ON photo = id ORDER BY id"
    )


def verify_releases(collection: Collection, photos: list[Path], out: Path) -> None:
    """Check that each photo is once in the collection and in the output folder, and each file is the recorded one."""
    catalog = collection.storage
    assert sorted(row[2] for row in references(collection)) == sorted(map(str, photos))
    assert sorted(file.name for file in out.glob("[!.]*")) == sorted(photo.name for photo in photos)
    for photo in photos:
        number = catalog.find(hashlib.sha256(photo.read_bytes()).hexdigest())
        assert number is not None
        row = catalog.last_release(number)
        assert row is not None, f"{photo} is not recorded as released"
        assert row.path == str(out / photo.name)
        assert hashlib.sha256((out / photo.name).read_bytes()).hexdigest() == row.sha256, f"{photo} is incomplete"
    # A kill may leave temporary files, which are findings of the part 'file'.
    assert [finding for finding in collection.check() if finding.part != "file"] == []

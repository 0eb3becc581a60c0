"""The server runs without the packages that only benches, figures and training need."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.collection.tiny import tiny_codebook, tiny_extractor

from homing.collection import Collection

# scikit-image, which lays photos over each other, is part of the serve extra.
LIBRARIES = ("lpips", "matplotlib", "ray", "scipy.io", "sklearn", "torchvision")
PACKAGES = ("homing.bench", "homing.training")


def run(
    code: str, *arguments: str, blocked: tuple[str, ...] = LIBRARIES + PACKAGES
) -> subprocess.CompletedProcess[str]:
    block = f"import sys\nsys.modules.update(dict.fromkeys({blocked}))\n"
    command = [sys.executable, "-c", block + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_serve_prints_its_help() -> None:
    # The command line reads the settings of benches and of training, for their options.
    found = run("from homing.cli import main\nmain()", "serve", "--help", blocked=LIBRARIES)
    assert (found.returncode, found.stderr) == (0, "")
    assert "Serve a collection" in found.stdout


@pytest.mark.slow
def test_the_app_is_made(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()).close()
    code = """
import homing.service.server
from homing.collection import Collection
from homing.service import create_app
from tests.collection.tiny import tiny_extractor
with Collection.open(sys.argv[1], extractor=tiny_extractor()) as opened:
    print("/v1/search" in create_app(opened).openapi()["paths"])
"""
    found = run(code, str(tmp_path / "c.homing"))
    assert (found.stdout, found.stderr) == ("True\n", "")


def test_the_bench_packages_are_blocked() -> None:
    assert "homing.bench" in run("import homing.bench").stderr

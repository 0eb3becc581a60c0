"""An edit of another package is one file: registered, found by name, and tested like the bundled ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

POSTERIZE = '''
from PIL import Image, ImageOps
from torch import Tensor
from homing.edits import Views, edit

@edit("color", bounds=(1, 8), neutral=8, whole=True)
def posterize(image: Image.Image, strength: int) -> Image.Image:
    """Keep this many bits of every value."""
    return ImageOps.posterize(image, strength)

@posterize.differentiable
def _posterize(views: Views, strength: Tensor) -> Views:
    step = 2 ** (8 - strength)[:, None, None, None]
    few = ((255 * views.pixels).round() / step).floor() * step / 255
    return Views(views.pixels + (few - views.pixels).detach(), views.ratio)
'''


def run_with(site: Path, module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python where a package with this module is installed, which the entry point `homing.edits` names."""
    (site / "posterize_edit.py").write_text(module)
    about = site / "posterize_edit-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: posterize-edit\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[homing.edits]\nposterize = posterize_edit\n")
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_edit_of_another_package_is_found_and_tested(tmp_path: Path) -> None:
    folder = Path(__file__).parent
    tests = [folder / "test_every_edit.py", folder / "test_differentiable_edits.py"]
    done = run_with(tmp_path, POSTERIZE, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "posterize", *tests)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20


def test_a_module_of_another_package_may_use_all_of_the_package(tmp_path: Path) -> None:
    module = "from homing.edits import *\nprint(len(PAPER), 'jpeg' in SWEEPS)"
    done = run_with(tmp_path, module, "-c", "import homing.edits")
    assert done.stdout == "14 True\n", done.stderr

"""The server runs without the packages that only benches, figures and training need."""

import subprocess
import sys

import pytest

BLOCKED = ("homing.bench", "homing.training", "augly", "lpips", "matplotlib", "skimage", "sklearn")


@pytest.mark.slow
def test_the_app_imports_neither_the_benches_nor_their_dependencies() -> None:
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in BLOCKED)
    code = f"import sys\n{blocked}import homing.service.app, homing.service.server\nprint('imported')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("imported\n", "")

"""Memory of the process."""

import platform
import subprocess
import sys

import pytest

DESCRIBING = """
import resource, torch
from homing import extractors
network, images = extractors.load("homing-1", device="cpu"), torch.rand(16, 3, 224, 224)
with torch.inference_mode():
    network(images)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        network(images)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_a_network_on_a_cpu_reuses_its_memory() -> None:
    """Without tuning malloc, 16 photos need about 80,000 fresh pages of 4 kB, since layers return their memory."""
    done = subprocess.run([sys.executable, "-c", DESCRIBING], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 30_000

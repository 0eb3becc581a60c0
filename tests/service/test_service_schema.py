"""The service conforms to its OpenAPI document for all requests that schemathesis generates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.service.conftest import Process

pytestmark = pytest.mark.slow

# A schema cannot say which bytes are a photo, so valid requests may be rejected.
EXCLUDED_CHECK = "positive_data_acceptance"


def test_schemathesis_finds_no_violation(own_process: Process, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{own_process.address}/openapi.json"]
    options = ["--max-examples", "8", "--exclude-checks", EXCLUDED_CHECK, "--seed", "1", "--no-color"]
    options += ["--request-timeout", "120", "--suppress-health-check", "all"]  # a busy machine is slow
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert own_process.client.get("/readyz").status_code == 200

"""The load benchmark with few requests: all concurrent clients get the right photo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("where", [[], ["--collection", "../served.lance"]], ids=["SQLite", "Lance"])
def test_concurrent_clients_get_no_errors(photos: Path, where: list[str], tmp_path: Path) -> None:
    (cwd := tmp_path / "work").mkdir()
    command = [sys.executable, str(ROOT / "benchmarks" / "serving.py"), "--photos", str(photos)]
    options = [*where, "--references", "1000", "--seconds", "1", "--clients", "1", "16"]
    done = subprocess.run([*command, *options], cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [(row[0].strip(), row[1].strip()) for row in rows] == [
        (clients, part)
        for clients in ("1", "16")
        for part in ("whole request", "decode", "network", "search", "all except the network")
    ]
    for clients in ("1", "16"):
        (summary,) = re.findall(rf"^{clients} clients, \d+ s: (.*)$", done.stdout, re.MULTILINE)
        assert re.match(r"[\d,]+ of 200; the photo was the first match of (9\d|100) %$", summary), summary
    assert list(cwd.iterdir()) == []

"""Errors of optional libraries, and of modules of other packages, that are missing or broken."""

import os
import subprocess
import sys

import pytest

from homing._imports import load_extra
from homing.errors import HomingError


def test_a_missing_library_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HomingError, match=r"matplotlib is missing; get it: pip install 'homing\[bench\]'"):
        load_extra("matplotlib", extra="bench")


def test_a_broken_library_reports_its_own_error(monkeypatch, tmp_path):
    (tmp_path / "broken_library.py").write_text("raise ImportError('libexample.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(HomingError, match=r"broken_library cannot be loaded: libexample\.so\.1.*install it again"):
        load_extra("broken_library", extra="bench")


USES = {
    "extractors": "from homing.extractors import registry; registry.available()",
    "edits": "import homing.edits",
    "benches": "from homing.bench.base import load_bench; load_bench('speed'); load_bench('outside')",
    "storages": "from homing.collection.storage import storage_at; storage_at(None)",
}


@pytest.mark.parametrize(("group", "error"), [*((group, "AttributeError") for group in USES), ("edits", "SystemExit")])
def test_a_broken_package_is_named_whenever_it_is_used(group, error, tmp_path):
    (tmp_path / "broken.py").write_text(f"raise {error}('torch has no float4')")
    about = tmp_path / "outside-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[homing.{group}]\noutside = broken:Outside\n")
    twice = "for _ in range(2):\n try:\n  {use}\n except HomingError as error:\n  print(error)"
    done = subprocess.run(
        [sys.executable, "-c", "from homing.errors import HomingError\n" + twice.format(use=USES[group])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    line = (
        f"broken:Outside, of the entry point homing.{group}, cannot be imported: torch has no float4; "
        "repair or uninstall that package"
    )
    assert done.stdout.splitlines() == [line, line], done.stderr

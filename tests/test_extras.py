"""Errors of optional libraries that are missing or broken."""

import sys

import pytest

from homing._extras import load_extra
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

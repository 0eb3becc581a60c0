"""`homing compact`: its output."""

from pathlib import Path

from tests.bench.helpers import homing


def test_compact_counts_the_versions_kept(photos: Path, tmp_path: Path) -> None:
    homing("init", tmp_path / "c.lance")
    homing("add", tmp_path / "c.lance", photos / "rocket.jpg")
    assert " versions are kept." in homing("compact", tmp_path / "c.lance")
    homing("add", tmp_path / "c.lance", photos / "flower.jpg")
    assert "2 photos, all indexed; 1 version is kept." in homing("compact", tmp_path / "c.lance", "--keep-days", 0)

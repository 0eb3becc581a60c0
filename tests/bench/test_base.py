"""What all benches share: settings that are options, and benches of other packages."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bench.helpers import homing

from homing._options import Option, options_of, setting
from homing.bench.base import Settings, bench_names, load_bench
from homing.errors import HomingError, UnknownNameError

OUTSIDE = '''
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from homing.bench.base import Bench, Option, Settings, setting
from homing.bench.figures import Figure
from homing.bench.tables import Table


@dataclass(frozen=True, kw_only=True)
class SizesSettings(Settings):
    folder: Path = setting(Option("A folder of files.", argument="FOLDER"))
    suffixes: Sequence[str] = setting(Option("Comma-separated suffixes.", read=str), (".jpg", ".png"))
    minimum: int = setting(Option("The smallest size that counts, in bytes.", minimum=1), 1)


class Sizes(Bench):
    """Measure how large files are."""

    title = "Sizes of files"
    settings_class = SizesSettings
    settings: SizesSettings

    def measure(self) -> None:
        for suffix in self.settings.suffixes:
            files = [path for path in self.settings.folder.iterdir() if path.suffix == suffix]
            sizes = [path.stat().st_size for path in files if path.stat().st_size >= self.settings.minimum]
            self.rows.append({"suffix": suffix, "files": len(sizes), "bytes": sum(sizes)})

    def summary(self) -> str:
        return "Sizes."

    def about(self) -> Mapping[str, object]:
        return {"minimum": self.settings.minimum}

    def tables(self) -> list[Table]:
        rows = [[str(value) for value in row.values()] for row in self.rows]
        return [Table(name="sizes", caption="Bytes by suffix.", headings=["suffix", "files", "bytes"], rows=rows)]

    def figures(self) -> list[Figure]:
        return [Figure(name="bytes", caption="Bytes.", draw=lambda canvas: canvas.subplots().plot([1, 2]))]
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package outside of homing that offers a bench by entry point, and a folder of files to measure."""
    site, folder = tmp_path / "site", tmp_path / "folder"
    (site / "outside-1.0.dist-info").mkdir(parents=True)
    (site / "outside.py").write_text(OUTSIDE)
    (site / "outside-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (site / "outside-1.0.dist-info" / "entry_points.txt").write_text("[homing.benches]\nsizes = outside:Sizes\n")
    monkeypatch.syspath_prepend(str(site))
    folder.mkdir()
    for name, size in (("a.jpg", 5), ("b.jpg", 7), ("c.png", 11)):
        (folder / name).write_bytes(bytes(size))
    return folder


def test_a_bench_of_another_package_is_a_command_with_a_report(installed: Path, tmp_path: Path) -> None:
    assert "Measure how large files are." in homing("bench", "--help")
    help_text = homing("bench", "sizes", "--help")
    assert all(text in help_text for text in ("FOLDER", "--suffixes", ".jpg,.png", "--minimum", "--out", "--json"))
    printed = homing("bench", "sizes", installed, "--suffixes", ".jpg, .jpg", "--minimum", 6, "--out", tmp_path / "out")
    assert re.search(r"\.jpg +1 +7", printed)
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert document["rows"] == [{"suffix": ".jpg", "files": 1, "bytes": 7}]
    assert document["command"].startswith("homing bench sizes")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("results.json", "report.html", "sizes.md", "sizes.tex", "bytes.svg", "bytes.png")
    }
    homing("bench", "sizes", installed, "--minimum", 0, "--out", tmp_path / "never", code=2)
    with pytest.raises(HomingError, match="--suffixes takes comma-separated names, got none"):
        load_bench("sizes").settings_class(out=tmp_path, folder=installed, suffixes=[])


@pytest.mark.usefixtures("installed")
def test_a_bench_of_another_package_does_not_replace_a_bundled_one(tmp_path: Path) -> None:
    about = tmp_path / "site" / "outside-1.0.dist-info"
    (about / "entry_points.txt").write_text("[homing.benches]\nspeed = outside:Sizes\nsizes = outside:Sizes\n")
    assert bench_names().count("speed") == 1
    refusal = "outside:Sizes, of the entry point homing.benches, has the name of the bundled bench 'speed'; rename"
    with pytest.raises(HomingError, match=refusal):
        load_bench("speed")
    assert load_bench("sizes").title == "Sizes of files"


@pytest.mark.parametrize(
    ("outside", "problem"),
    [("raise AttributeError('no float4')", "cannot be imported: no float4"), ("Sizes = 5", "is not a class that")],
)
def test_a_broken_bench_of_another_package_leaves_the_others(installed: Path, outside: str, problem: str) -> None:
    site = installed.parent / "site"
    (site / "outside.py").write_text(outside)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from homing.cli import main; sys.exit(main())", "bench", "--help"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"skipped   outside:Sizes, of the entry point homing.benches, {problem}")
    assert line.endswith("repair or uninstall that package")
    assert "retrieval" in done.stdout and "watermarks" in done.stdout and "sizes" not in done.stdout


def test_the_error_of_an_unknown_bench_names_the_benches() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown bench 'sped'; did you mean 'speed'\?") as refused:
        load_bench("sped")
    assert all(name in str(refused.value) for name in bench_names())


def test_every_bench_has_its_settings() -> None:
    names = bench_names()
    assert {"retrieval", "speed", "paper"} <= set(names)
    for name in names:
        bench = load_bench(name)
        assert bench.title and bench.__doc__
        assert "out" in options_of(bench.settings_class)
        for setting_name, option in options_of(bench.settings_class).items():
            assert option.help.endswith("."), f"{name}: {setting_name}"


@dataclass(frozen=True, kw_only=True)
class Example(Settings):
    shares: Sequence[float] = setting(Option("Shares.", read=float, takes="numbers", minimum=0, maximum=1), (0.5,))
    edit: str = setting(Option("An edit.", choices=lambda: ["crop", "meme"], kind="edit"), "crop")
    limit: int | None = setting(Option("At most.", minimum=1), None)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"shares": [0.1, 2]}, "--shares takes a value from 0 to 1, got 2"),
        ({"shares": [float("nan")]}, "--shares takes a value from 0 to 1, got nan"),
        ({"shares": []}, "--shares takes comma-separated numbers, got none"),
        ({"edit": "corp"}, "unknown edit 'corp'; did you mean 'crop'?"),
        ({"limit": 0}, "--limit takes a value of at least 1, got 0"),
    ],
)
def test_values_are_checked_in_python_as_well(tmp_path: Path, settings: dict, line: str) -> None:
    with pytest.raises(HomingError, match=re.escape(line)):
        Example(out=tmp_path, **settings)


def test_what_is_given_twice_is_measured_once(tmp_path: Path) -> None:
    assert Example(out=tmp_path, shares=[0.5, 0.1, 0.5]).shares == (0.5, 0.1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("retrieval", {"distractors": 0}),
        ("edits", {"limit": 0}),
        ("quality", {"probes": 0}),
        ("quality", {"pictures": -1}),
        ("calibration", {"distractors": 1}),
        ("speed", {"rounds": 0}),
        ("speed", {"batches": [8, 0]}),
        ("paper", {"positives": 0}),
        ("watermarks", {"key": -1}),
    ],
)
def test_numbers_have_limits(tmp_path: Path, name: str, settings: dict) -> None:
    settings_class = load_bench(name).settings_class
    paths = dict.fromkeys(("out", "photos", "distractor_photos", "disc21"), tmp_path)
    given = {path: value for path, value in paths.items() if path in options_of(settings_class)}
    settings_class(**given)
    with pytest.raises(HomingError, match=r"takes a value (of at least|from) "):
        settings_class(**given, **settings)

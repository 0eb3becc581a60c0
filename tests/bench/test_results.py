"""Results written as files."""

import csv
import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.bench.fake_results import NAMES, SUMMARY, fake_results

from homing import __version__
from homing._imports import load_extra
from homing.bench.report import Results
from homing.errors import HomingError


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one bench, in a new folder."""
    folder = tmp_path_factory.mktemp("bench") / "new" / "out"
    fake_results().write(folder)
    return folder


def test_exactly_the_expected_files_are_written(out: Path) -> None:
    assert {path.name for path in out.iterdir()} == {
        "results.json",
        "queries.csv",
        "quality.md",
        "quality.tex",
        *(f"{name}.{kind}" for name in ("one", "two") for kind in ("svg", "png")),
        "report.html",
    }


def test_results_json_is_the_whole_document(out: Path) -> None:
    output = json.loads((out / "results.json").read_text())
    results = fake_results()
    assert output == results.as_json()
    assert output | results.numbers == output
    assert (output["summary"], output["command"]) == (results.summary, results.command)
    assert output["versions"]["homing"] == __version__
    assert output["hardware"]


def test_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        fake_results(numbers={"mean": float("nan")}).write(tmp_path)


def test_csv_round_trip_with_unusual_names(out: Path) -> None:
    with (out / "queries.csv").open(newline="", errors="surrogateescape") as file:
        assert list(csv.reader(file)) == [["photo", "is_correct"], *([name, "1"] for name in NAMES)]
    assert (out / "queries.csv").read_bytes().startswith(b"photo,is_correct\nplain.jpg,1\n")


def test_results_may_have_numbers_only(tmp_path: Path) -> None:
    Results(title="t", summary="s", command="c", numbers={}).write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "report.html"}


def test_the_markdown_table(out: Path) -> None:
    assert (out / "quality.md").read_text() == (
        f"What 100% of the files look like. {SUMMARY}\n"
        "\n"
        r"| recipe | probes | PSNR | a\|b |" + "\n"
        "| --- | --- | --- | --- |\n"
        "| passive | 1 | ∞ |  |\n"
        "| paper_fast | exact | 43.8 ± 0.1 dB | – |\n"
    )


def test_the_latex_table(out: Path) -> None:
    assert (out / "quality.tex").read_text() == (
        r"""% Needs \usepackage{booktabs}; a table made to fit the line also \usepackage{graphicx}.
\begin{table}[t]
\centering
\caption{What 100\% of the files look like. 2 photos among 10 references, from 8 distinct photos.}
\label{tab:quality}
\begin{tabular}{lccc}
\toprule
recipe & probes & PSNR & a\textbar{}b \\
\midrule
passive & 1 & $\infty$ &  \\
\midrule
paper\_fast & exact & 43.8 $\pm$ 0.1 dB & \textendash{} \\
\bottomrule
\end{tabular}
\end{table}
"""
    )


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """Limit the size of files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_error_line(tmp_path: Path) -> None:
    with pytest.raises(HomingError) as raised, limited_file_size(3_000):
        fake_results().write(tmp_path)
    assert str(raised.value) == f"cannot write {tmp_path / 'one.svg'}: File too large"
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "queries.csv", "quality.md", "quality.tex"}


def test_a_folder_that_cannot_be_created_is_one_error_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomingError, match=r"cannot write .*file: File exists$"):
        fake_results().write(tmp_path / "file")
    (tmp_path / "results.json").mkdir()
    with pytest.raises(HomingError, match=r"cannot write .*results\.json: Is a directory$"):
        fake_results().write(tmp_path)


def test_a_missing_matplotlib_names_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = r"matplotlib is missing; get it: pip install 'homing\[bench\]'"
    with pytest.raises(HomingError, match=line):
        load_extra("matplotlib", extra="bench")
    with pytest.raises(HomingError, match=line):
        fake_results().write(tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["rows"]
    fake_results(figures=[]).write(tmp_path)

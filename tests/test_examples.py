"""Every example runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from homing.collection import Collection
from homing.extractors import Extractor

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: Path | str) -> str:
    command = [sys.executable, EXAMPLES / name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    source = Path(__file__).read_text() + "".join(
        path.read_text() for path in Path(__file__).parent.rglob("test_*examples*.py")
    )
    names = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")]
    assert names
    for name in names:
        assert f'"{name}"' in source, name


@pytest.mark.slow
def test_quickstart(photos: Path, tmp_path: Path) -> None:
    printed = run("quickstart.py", photos, tmp_path / "out")
    assert printed.count("activated") == 4
    assert "The verdict on the copy: match" in printed


@pytest.mark.slow
def test_service_client(photos: Path, tmp_path: Path, extractor: Extractor) -> None:
    from tests.service.server_process import serve

    Collection.create(tmp_path / "served.homing", extractor=extractor).close()
    with serve(tmp_path / "served.homing") as server:
        printed = run("service_client.py", server.address, photos, photos / "rocket.jpg")
    assert "rocket.jpg: added" in printed and "rocket.jpg: match" in printed
    assert "The server holds 4 photos." in printed


@pytest.mark.slow
def test_own_network_and_faiss() -> None:
    printed = run("own_network_and_faiss.py")
    (recalls,) = (line.split() for line in printed.splitlines() if line.startswith("recall of edited copies"))
    assert float(recalls[-1]) > float(recalls[-3]) + 0.05  # activated, passive
    assert "a JPEG copy of astronaut.png: match" in printed


@pytest.mark.slow
def test_paper_table_small(photos: Path) -> None:
    first, _, headings, *lines = run("paper_table_small.py", photos, "--count", "2").splitlines()
    assert first == "2 photos, 118,287 distractors"
    assert headings.split()[-3:] == ["passive", "paper", "homing"]
    rows = {line[:30].strip(): line[30:].split() for line in lines}
    assert rows["identity"] == ["1.00", "1.00", "1.00"]
    passive, paper, best = map(float, rows["mean of the 14 edits"])
    assert min(paper, best) > passive
    assert float(rows["PSNR, dB"][1]) == pytest.approx(43.8, abs=0.5)


@pytest.mark.slow
def test_tensors_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / "tensors.ipynb", as_version=4)
    saved = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert any("image/png" in json.dumps(outputs) or "image/jpeg" in json.dumps(outputs) for outputs in saved)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": EXAMPLES}}).execute()
    outputs = json.dumps([cell.outputs for cell in notebook.cells if cell.cell_type == "code"])
    assert "image/png" in outputs or "image/jpeg" in outputs

"""An interrupted or failed command prints one line, never a traceback."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.commands import INTERRUPTIBLE

from homing.__main__ import main
from homing.collection import Collection

pytestmark = pytest.mark.slow

# A job whose photos, but for 0.png, take two minutes or as many seconds as SECONDS says.
LONG = """
import os, sys, time
from homing.__main__ import main
from homing.collection import add

def slow(path):
    if path.name != "0.png":
        print("at work", flush=True)
        time.sleep(float(os.environ.get("SECONDS", 120)))
    return read(path)

read, add.read_to_record = add.read_to_record, slow
sys.argv[0] = "homing"
main()
"""


@pytest.mark.parametrize(
    ("error", "code", "line"), [(MemoryError, 2, "homing: not enough memory"), (KeyboardInterrupt, 130, "")]
)
def test_exit_code_and_line_of_an_interrupted_command(
    error: type[BaseException],
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop() -> None:
        raise error

    monkeypatch.setattr("homing.cli.app", stop)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == code
    assert capsys.readouterr().err.startswith(line)


def start_add(folder: Path, *arguments: str, seconds: int = 120) -> subprocess.Popen[str]:
    command = [*INTERRUPTIBLE, f"SECONDS={seconds}", sys.executable, "-c", LONG, "add", "c.homing", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, bufsize=1, **pipes)


def test_json_of_an_interrupted_job_has_what_was_done(photos: Path, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes((photos / "camera.png").read_bytes() + bytes(number))
    with Collection.create(tmp_path / "c.homing") as made:
        made.add(tmp_path / "0.png")
    with start_add(tmp_path, "0.png", "1.png", "--json", seconds=8) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "at work\n"
        time.sleep(3)  # the outcome of 0.png is reported by then
        job.send_signal(signal.SIGINT)
        output, errors = job.communicate(timeout=300)
    assert job.returncode == 130 and errors.endswith("run the same command to continue\n")
    (outcome,) = json.loads(output)
    assert (outcome["photo"], outcome["state"]) == ("0.png", "known")


def test_a_second_ctrl_c_stops_at_once(photos: Path, tmp_path: Path) -> None:
    Collection.create(tmp_path / "c.homing").close()
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes((photos / "camera.png").read_bytes() + bytes(number))
    with start_add(tmp_path, "0.png", "1.png") as job:
        assert job.stdout is not None and job.stderr is not None
        assert job.stdout.readline() == "at work\n"
        job.send_signal(signal.SIGINT)
        assert job.stderr.readline() == "homing: finishing the photos in progress; Ctrl-C again stops at once\n"
        time.sleep(1)
        assert job.poll() is None, "the photos in progress are finished first"
        job.send_signal(signal.SIGINT)
        _, output = job.communicate(timeout=300)
    assert job.returncode == 130
    assert output in ("", "homing: interrupted; finished work is kept, run the same command to continue\n")
    with Collection.open(tmp_path / "c.homing") as opened:
        assert opened.check() == []

"""Progress lines where stderr is not a terminal."""

import re
from pathlib import Path

import pytest
from tests.bench.helpers import skimage_photos
from typer.testing import CliRunner

from homing.cli import _progress, app
from homing.cli._progress import ProgressLog, start_command


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_progress, "monotonic", clock)
    start_command()
    return clock


def test_one_line_a_minute_with_rate_and_remaining_time(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    log = ProgressLog("Activating", 20_000, unit="photos")
    for second in range(354):
        clock.now += 1
        log.update(3.4 * (second + 1))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert lines[0] == "homing: activating 204 of 20,000 photos, 3.4/s, 1 h 37 min left"
    assert lines[-1] == "homing: activating 1,020 of 20,000 photos, 3.4/s, 1 h 33 min left"


def test_work_of_an_earlier_run_does_not_count_for_the_rate(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    log = ProgressLog("Fetching net:", 400, done=100, unit="MB")
    clock.now += 60
    log.update(100)
    clock.now += 40
    log.update(300)
    assert capsys.readouterr().err == "homing: fetching net: 300 of 400 MB, 2/s, 50 s left\n"


def test_a_job_without_unit_has_a_colon(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    log = ProgressLog("homing-1: editing, passive", 200_000)
    clock.now += 100
    log.update(100)
    assert capsys.readouterr().err == "homing: homing-1: editing, passive: 100 of 200,000, 1/s, 2 d 8 h left\n"


def test_jobs_of_one_command_share_the_interval(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        log = ProgressLog("Describing", 40)
        for done in range(1, 41):
            clock.now += 1
            log.update(done)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_short_jobs_print_no_progress_and_long_ones_leave_stdout_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("chelsea.png", "coffee.png", "rocket.jpg")
    folder = tmp_path / "photos"
    folder.mkdir()
    skimage_photos(folder, names)
    run = CliRunner().invoke
    assert run(app, ["init", str(tmp_path / "c.homing")]).exit_code == 0
    short = run(app, ["add", str(tmp_path / "c.homing"), str(folder / names[0]), "--json"])
    assert (short.exit_code, short.stderr) == (0, "")
    monkeypatch.setattr(_progress, "LOG_INTERVAL", 0.0)
    long = run(app, ["add", str(tmp_path / "c.homing"), str(folder), "--json"])
    lines = long.stderr.splitlines()
    assert [re.sub(r",? [\d.,]+/s, .* left", "", line) for line in lines] == [
        f"homing: adding {done} of 3 photos" for done in (1, 2)
    ]
    assert long.stdout.startswith("[\n")

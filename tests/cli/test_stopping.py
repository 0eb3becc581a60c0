"""What stops a command is told in a line at most, never as a traceback."""

import pytest

from homing.__main__ import main


@pytest.mark.parametrize(
    ("error", "code", "line"), [(MemoryError, 2, "homing: not enough memory"), (KeyboardInterrupt, 130, "")]
)
def test_the_exit_code_says_why(
    error: type[BaseException],
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop() -> None:
        raise error

    monkeypatch.setattr("homing.cli.app", stop)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert capsys.readouterr().err.startswith(line)

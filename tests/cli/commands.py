"""`homing` as a process: the installed command, or a fork of a process that has imported everything."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

HOMING = str(Path(sys.executable).with_name("homing"))
# Prefix of a command: background tests ignore Ctrl-C, and so would their child processes.
INTERRUPTIBLE = ("env", "--default-signal=INT")
Done = subprocess.CompletedProcess[str]
TIMEOUT = 300  # seconds


def installed(*arguments: object, code: int = 0, **environment: str) -> Done:
    """Run the installed command."""
    command = [HOMING, *map(str, arguments)]
    everything = os.environ | environment
    done = subprocess.run(
        command, env=everything, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    return _expected(done, code)


def homing(*arguments: object, code: int = 0) -> Done:
    """Run the command in a fork, which saves the seconds of its imports."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child, replies = _begin(arguments, *(f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)))
        if not select.select([replies], [], [], TIMEOUT)[0]:
            os.kill(child, signal.SIGKILL)
        ended = int(replies.readline())
        out.seek(0)
        err.seek(0)
        return _expected(Done(arguments, ended, out.read(), err.read()), code)


def killed(*arguments: object, ready: Callable[[], bool]) -> None:
    """Run the command in a fork and kill it once `ready` returns true, if it still runs."""
    child, replies = _begin(arguments, os.devnull, os.devnull)
    while not select.select([replies], [], [], 0.002)[0]:
        if ready():
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(child, signal.SIGKILL)
            break
    replies.readline()


def _begin(arguments: tuple[object, ...], *files: str) -> tuple[int, IO[bytes]]:
    """Start a command with these files as stdout and stderr; returns its pid and the stream of its exit code."""
    process = _fork_server()
    assert process.stdin is not None and process.stdout is not None
    what = {"arguments": list(map(str, arguments)), "files": files}
    where = {"folder": str(Path.cwd()), "environment": dict(os.environ)}
    process.stdin.write(json.dumps(what | where).encode() + b"\n")
    return int(process.stdout.readline()), process.stdout


def _expected(done: Done, code: int) -> Done:
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@cache
def _fork_server() -> subprocess.Popen[bytes]:
    """A process that reads one command per line, and writes the pid of the child and later its exit code."""
    command = [sys.executable, "-m", "tests.cli.commands"]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    atexit.register(process.communicate)  # closes its stdin, which ends it
    return process


def _serve_forks() -> None:
    """Fork for every command. Returns in the child, set up as a shell would start it."""
    import timm  # noqa: F401  # slow to import

    import homing.cli
    import homing.collection  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            order = json.loads(line)
            os.chdir(order["folder"])
            os.environ.clear()
            os.environ.update(order["environment"])
            for number, name in enumerate((os.devnull, *order["files"])):
                os.dup2(os.open(name, os.O_RDWR), number)
            sys.argv = ["homing", *order["arguments"]]
            return
        os.write(1, f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    sys.exit()


if __name__ == "__main__":
    _serve_forks()
    from homing.__main__ import main

    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    # Exit like Python, but without freeing memory, which takes longest.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

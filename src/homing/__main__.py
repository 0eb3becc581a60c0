"""The `homing` command and `python -m homing`. Ctrl-C prints no traceback, not even during imports."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    try:
        from homing.cli import main as run

        run()
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != 130:
            raise
        # Python waits for running threads at exit; a second Ctrl-C during this would print a traceback.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        sys.exit(130)


if __name__ == "__main__":
    main()

"""The `homing` command, and `python -m homing`: quiet even when stopped before it has begun."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from homing.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

"""Whether pictures can be drawn: matplotlib is an extra."""

from __future__ import annotations

from homing.errors import HomingError


def check_drawing(extra: str) -> None:
    """Say at once, not after hours of work, that pictures cannot be drawn, and which extra of homing mends it."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise HomingError(f"pictures are drawn with matplotlib; get it: pip install 'homing[{extra}]'") from error

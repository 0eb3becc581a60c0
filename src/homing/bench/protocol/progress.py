"""Progress reports of a bench."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

# Opens a progress bar with a description and a length; yields the function that advances it by one.
Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]

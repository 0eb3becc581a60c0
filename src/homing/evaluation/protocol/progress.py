"""How a bench says where it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

# Opens a bar of a description and a length; gives the function that moves it on by one.
Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]

"""Photos that take the place of those that were added from the same paths before."""

from __future__ import annotations

import os
from pathlib import Path
from threading import RLock

from homing.collection.catalogue import Catalogue


class Replacing:
    """What one job may replace: no reference whose photo it meets, whatever the name of its file is by now."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._met: dict[str, str] = {}
        self.lock = RLock()  # photos are met in threads, ahead of the one that replaces: held from asking to removing

    def meet(self, sha256: str, path: Path) -> int | None:
        """The reference of a photo that lies here; from now on it stays."""
        with self.lock:
            self._met.setdefault(sha256, os.path.abspath(path))
            return self._catalogue.find(sha256)

    def outdated(self, path: Path, sha256: str) -> list[int]:
        """The references that were added from this path when it held another file; others are said to have moved."""
        source, left = os.path.abspath(path), []
        for number, known in self._catalogue.at(source):
            if known in self._met:
                if self._met[known] != source:
                    self._catalogue.move(number, source, self._met[known])
            elif known != sha256:
                left.append(number)
        return left

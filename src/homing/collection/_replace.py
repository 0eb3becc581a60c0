"""Photos that take the place of those that were added from the same paths before."""

from __future__ import annotations

from threading import RLock

from homing._io.paths import Location, stored_path
from homing.collection.catalog import Catalog


class ReplaceTracker:
    """What one job may replace: no reference whose photo it meets, whatever the name of its file is by now."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen: dict[str, str] = {}
        self.lock = RLock()  # photos are met in threads, ahead of the one that replaces: held from asking to removing

    def lookup_existing(self, sha256: str, path: Location) -> int | None:
        """The reference of a photo that lies here; from now on it stays."""
        with self.lock:
            self._seen.setdefault(sha256, stored_path(path))
            return self._catalog.find(sha256)

    def outdated(self, path: Location, sha256: str) -> list[int]:
        """The references that were added from this path when it held another file; others are said to have moved."""
        source, left = stored_path(path), []
        for number, known in self._catalog.find_by_source(source):
            if known in self._seen:
                if self._seen[known] != source:
                    self._catalog.update_source(number, source, self._seen[known])
            elif known != sha256:
                left.append(number)
        return left

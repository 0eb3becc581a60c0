"""Replace the references that were added from the same paths before."""

from __future__ import annotations

from threading import RLock

from homing._io.paths import Location, stored_path
from homing.collection.storage import Storage


class ReplaceTracker:
    """Finds the references that a job may replace. A photo of the input is never replaced, even under a new name."""

    def __init__(self, catalog: Storage) -> None:
        self._catalog = catalog
        self._seen: dict[str, str] = {}
        self.lock = RLock()  # lookups run in threads ahead of the replacement: held from the lookup until the removal

    def lookup_existing(self, sha256: str, path: Location) -> int | None:
        """The reference with this hash, if there is one. The job sees it at this path and does not remove it."""
        with self.lock:
            self._seen.setdefault(sha256, stored_path(path))
            return self._catalog.find(sha256)

    def outdated(self, path: Location, sha256: str) -> list[int]:
        """The references added from this path with another hash. The sources of moved photos are updated."""
        source, outdated = stored_path(path), []
        for number, known in self._catalog.find_by_source(source):
            if known in self._seen:
                if self._seen[known] != source:
                    self._catalog.update_source(number, source, self._seen[known])
            elif known != sha256:
                outdated.append(number)
        return outdated

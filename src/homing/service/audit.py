"""Audit log: one line of JSON for each photo added, released or removed, on disk before the request is answered."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from homing._io.files import fsync_folder
from homing.errors import CollectionError


@dataclass(frozen=True)
class AuditEntry:
    """One action on one photo."""

    key: str
    action: Literal["added", "released", "removed"]
    id: int
    sha256: str
    photo: str


class AuditLog:
    """The audit log of a collection. Only the writer's thread writes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *entries: AuditEntry) -> None:
        """Append entries, and flush them to disk."""
        if not entries:
            return
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        lines = "".join(json.dumps({"time": now, **vars(entry)}, ensure_ascii=False) + "\n" for entry in entries)
        try:
            new = not self.path.exists()
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "ab") as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(handle)
            if new:
                fsync_folder(self.path.parent)
        except OSError as error:
            raise CollectionError(f"the audit log {self.path} cannot be written: {error.strerror}") from error

"""A service that is killed under load, and the checks that follow."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import torch
from tests.collection.tiny import tiny_photos
from tests.service.server_process import ServerProcess, serve

from homing.collection import Collection

CLIENTS = 6
MAX_LIFETIME = 2.0  # seconds until the kill, after the first acknowledgement
TIMEOUT = 120  # seconds per response
RECIPE = "paper-fast"
NEAREST = 100  # photos are looked for among as many in the index


@dataclass(frozen=True)
class Acknowledged:
    """An acknowledged photo: the id of its reference, and the hash of its released file, if any."""

    photo: Path
    id: int
    released: str | None = None


class CrashTest:
    """A collection whose servers are ended repeatedly."""

    def __init__(self, folder: Path, collection: Path, seed: int = 0) -> None:
        """The collection is changed; new photos are written into the folder."""
        self.folder, self.collection, self.rng = folder, collection, random.Random(seed)
        self.acknowledged: list[Acknowledged] = []
        self.seen: Counter[str] = Counter()
        self._batches = 0

    def run_and_signal(self, by: signal.Signals) -> list[str]:
        """Let clients use a server for a moment, end it by a signal, and verify.

        Returns the accepted requests that were not answered.
        """
        with serve(self.collection) as served:
            clients = [_Client(served, self._photos(), self.rng.getrandbits(32)) for _ in range(CLIENTS)]
            for client in clients:
                client.start()
            while not any(client.acknowledged for client in clients):
                assert any(client.is_alive() for client in clients), [client.wrong for client in clients]
                time.sleep(0.01)
            time.sleep(self.rng.uniform(0, MAX_LIFETIME))
            served.process.send_signal(by)
            code = served.process.wait(300)
        assert code == (-by if by == signal.SIGKILL else 0), f"it ended with {code}"
        for client in clients:
            client.join()
            assert not client.wrong, client.wrong
            self.acknowledged += client.acknowledged
            self.seen += client.statuses
        self.seen["ended"] += 1
        self.verify()
        return [line for client in clients for line in client.unanswered]

    def verify(self) -> None:
        """Check that all acknowledged photos are in the catalog, on disk and in the index, without other findings."""
        with Collection.open(self.collection) as collection:
            catalog = collection.storage
            for each in self.acknowledged:
                sha256 = hashlib.sha256(each.photo.read_bytes()).hexdigest()
                assert catalog.find(sha256) == each.id, f"{each.photo} is lost"
                kept = self.collection / "uploads" / sha256 / each.photo.name
                assert kept.read_bytes() == each.photo.read_bytes(), f"{each.photo} was not stored"
                if each.released is not None:
                    file = self.collection / "uploads" / "released" / sha256 / each.photo.name
                    assert hashlib.sha256(file.read_bytes()).hexdigest() == each.released, (
                        f"{file} is not what was sent"
                    )
                    row = catalog.find_release(each.id, each.released, str(file.resolve()))
                    assert row is not None and row.written and row.path == str(file.resolve())
            self._verify_index(collection)
            found = collection.check()
            assert not found, found
        self._verify_leftovers()

    def _verify_index(self, collection: Collection) -> None:
        ids = np.array([each.id for each in self.acknowledged])
        descriptors = collection.storage.descriptors(ids)
        originals = np.stack([descriptors[number][0] for number in ids.tolist()]).astype(np.float32)
        _, nearest = collection.index.search(torch.from_numpy(originals), NEAREST)
        found = (nearest == ids[:, None]).any(axis=1)
        assert found.all(), f"not in the index: {ids[~found].tolist()}"

    def _verify_leftovers(self) -> None:
        """Check that a repair removes stale unacknowledged uploads, records unacknowledged releases, and no more."""
        for each in self.collection.glob("uploads/**/*"):
            os.utime(each, (0, 0))
        with Collection.open(self.collection) as collection:
            found = collection.check(repair=True)
            assert all(each.part in ("file", "release") and each.repaired for each in found), found
            self.seen["leftovers"] += len(found)
            kept = {path.name for path in (self.collection / "uploads").iterdir()} - {"released"}
            assert all(collection.storage.find(sha256) is not None for sha256 in kept)
            assert collection.check() == []

    def _photos(self) -> list[Path]:
        self._batches += 1
        return tiny_photos(self.folder / str(self._batches), 100, seed=self._batches)


class _Client(threading.Thread):
    """Adds, activates and searches until the server is gone."""

    def __init__(self, served: ServerProcess, photos: list[Path], seed: int) -> None:
        super().__init__()
        self._address, self._photos, self._rng = served.address, photos, random.Random(seed)
        self.acknowledged: list[Acknowledged] = []
        self.unanswered: list[str] = []
        self._accepted = False
        self.wrong: list[str] = []
        self.statuses: Counter[str] = Counter()

    def run(self) -> None:
        """Send requests until the server is gone."""
        with closing(HTTPConnection(urlsplit(self._address).netloc, timeout=TIMEOUT)) as connection:
            while self._photos:
                work = self._rng.choice((self._add, self._add, self._activate, self._search))
                self._accepted = False
                try:
                    work(connection)
                except (OSError, HTTPException) as error:
                    if self._accepted:
                        self.unanswered.append(f"{work.__name__}: {error!r}")
                    return
                except AssertionError as error:  # the thread would hide it
                    self.wrong.append(str(error))
                    return

    def _add(self, connection: HTTPConnection) -> None:
        photos = [self._photos.pop() for _ in range(min(self._rng.randint(1, 4), len(self._photos)))]
        files = [("photo", (path.name, path.read_bytes())) for path in photos]
        _, answer = self._answered(connection, "/v1/photos", 201, files=files)
        for path, outcome in zip(photos, json.loads(answer)["outcomes"], strict=True):
            assert outcome["state"] == "added", outcome
            self.acknowledged.append(Acknowledged(path, outcome["id"]))

    def _activate(self, connection: HTTPConnection) -> None:
        path = self._photos.pop()
        files = {"photo": (path.name, path.read_bytes())}
        headers, file = self._answered(connection, "/v1/activate", 200, files=files, data={"recipe": RECIPE})
        self.acknowledged.append(Acknowledged(path, int(headers["X-Homing-Id"]), hashlib.sha256(file).hexdigest()))

    def _search(self, connection: HTTPConnection) -> None:
        path = self._photos[-1]
        files = {"photo": (path.name, path.read_bytes())}
        self._answered(connection, "/v1/search", 200, files=files)

    def _answered(self, connection: HTTPConnection, path: str, expected: int, **form: Any) -> tuple[Message, bytes]:
        """The response to a request. Requests that the server has not accepted when it ends need no response."""
        request = httpx.Request("POST", f"{self._address}{path}", **form)
        body = request.read()
        connection.putrequest("POST", path)
        for name, value in {"Content-Type": request.headers["Content-Type"], "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (received := connection.sock.recv(1000)):
                raise ConnectionError("it was not accepted")
            head += received
        assert head.startswith(b"HTTP/1.1 100 "), head
        self._accepted = True
        connection.send(body)
        answer = connection.getresponse()
        content = answer.read()
        self.statuses[str(answer.status)] += 1
        assert answer.status == expected, content
        return answer.headers, content

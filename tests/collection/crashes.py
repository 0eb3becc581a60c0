"""A process that adds, activates, removes and searches until it is killed, and the checks that follow each kill."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection, Outcome
from homing.extractors import describe_images
from homing.photo import Photo

ROOT = Path(__file__).parents[2]
LONGEST = 0.4  # seconds until a process is killed, at first


class KilledCollection:
    """A collection whose processes are killed again and again."""

    def __init__(self, folder: Path, photos: int = 60, seed: int = 0) -> None:
        self.folder, self.rng, self.longest = folder, random.Random(seed), LONGEST
        paths = tiny_photos(folder / "photos", photos, seed)
        Collection.create(folder / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()).close()
        descriptors = describe_images(tiny_extractor(), [Photo.load(path).pixels() for path in paths])
        self.descriptors = dict(zip(map(str, paths), descriptors, strict=True))
        self.hashes = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
        self.seen: Counter[str] = Counter()

    def kill_once(self, fork_server: ForkServer) -> None:
        """Let a process work for a moment, kill it, and check that nothing it reported is lost."""
        fork_server.start(self.folder, self.rng.getrandbits(32))
        time.sleep(self.rng.uniform(0, self.longest))
        fork_server.kill()
        self.verify()

    def verify(self) -> None:
        """Each reported photo is there once and is found, its file is complete, and a repair leaves no findings."""
        reported = self._reported()
        assert not (failed := [each for each in reported if each["state"] == "failed"]), failed
        present, removed, activated, releases = set[str](), set[str](), set[str](), dict[str, str]()
        for each in reported:
            photo = each["photo"]
            if each["state"] in ("removing", "removed"):  # after 'removing' it may be there or not
                present.discard(photo)
                activated.discard(photo)
                releases = {path: of for path, of in releases.items() if of != photo}
            elif each["state"] != "coming":  # logged before the change, like 'removing'
                present.add(photo)
                activated |= {photo} if each["state"] == "activated" else set()
                releases |= {each["released"]: photo} if each["released"] else {}
            (removed.add if each["state"] == "removed" else removed.discard)(photo)
        with Collection.open(self.folder / "c.homing", extractor=tiny_extractor()) as collection:
            self._verify_references(collection, sorted(present))
            assert not [each for each in removed if collection.storage.find(self.hashes[each]) is not None]
            self._verify_releases(collection, releases, activated)
        self._verify_check()
        self.seen |= Counter(each["state"] for each in reported)
        self.seen |= Counter(photos=len({each["photo"] for each in reported}))
        self.seen["kills"] += 1

    def _reported(self) -> list[dict[str, Any]]:
        reported = self.folder / "reported"
        return [json.loads(line) for line in reported.read_text().splitlines()] if reported.exists() else []

    def _verify_references(self, collection: Collection, known: list[str]) -> None:
        ids, _ = collection.index.contents()
        assert len(set(ids.tolist())) == len(ids) == collection.info().photos
        if not known:
            return
        descriptors = torch.stack([self.descriptors[path] for path in known])
        distances, ids = collection.index.search(descriptors, len(collection.index), probes=1)
        expected = (descriptors - collection.codebook.reconstruct(descriptors)).norm(dim=1).numpy()
        for path, nearest, found, own in zip(known, ids, distances, expected, strict=True):
            number = collection.storage.find(self.hashes[path])
            assert number is not None, f"{path} was reported and is lost"
            np.testing.assert_allclose(found[nearest == number], [own], atol=1e-4, err_msg=f"{path} is not found once")

    def _verify_releases(self, collection: Collection, releases: dict[str, str], activated: set[str]) -> None:
        catalog = collection.storage
        for path, photo in releases.items():
            data = Path(path).read_bytes()
            number = catalog.find(self.hashes[photo])
            assert number is not None
            row = catalog.find_release(number, hashlib.sha256(data).hexdigest(), path)
            assert row is not None and row.path == path, f"{path} was reported and is not the file that was released"
            # A photo reported as unchanged may be activated by a later job with another recipe that was killed.
            expected = ("activated",) if photo in activated else ("activated", "unchanged")
            assert catalog.source_and_state(number)[1] in expected, f"{path} was reported and has another state"
            Photo.decode(data, path)
        for file in (self.folder / "out").glob("*/[!.]*"):
            data = file.read_bytes()
            if _may_be_removed(file):
                Photo.decode(data, str(file))  # its reference may be removed, but the file must be complete
            else:
                found = catalog.find_released(hashlib.sha256(data).hexdigest())
                assert found is not None, f"{file} is incomplete or unknown to the catalog"

    def _verify_check(self) -> None:
        for file in self.folder.rglob(".*.tmp"):
            os.utime(file, (0, 0))  # old enough to be stale
        with Collection.open(self.folder / "c.homing", extractor=tiny_extractor()) as collection:
            found = collection.check(repair=True)
            assert all(finding.repaired for finding in found), found
            self.seen.update(finding.part for finding in found)
            assert collection.check() == []


class ForkServer:
    """A process that has imported everything and forks the ones that are killed, so that they start at once."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._orders: IO[str] = process.stdin
        self._replies: IO[str] = process.stdout
        self._child = 0

    def start(self, folder: Path, seed: int) -> None:
        """Start a process that works on the collection in a folder."""
        print(json.dumps([str(folder), seed]), file=self._orders, flush=True)
        self._child = int(self._replies.readline())

    def kill(self) -> None:
        """Kill the process started last, which must still be running."""
        os.kill(self._child, signal.SIGKILL)
        assert int(self._replies.readline()) == -signal.SIGKILL, "it ended before the kill"


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    """Start a fork server, and end it afterwards."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.collection.crashes"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield ForkServer(process)
        assert process.stdin is not None
        process.stdin.close()


def _serve_forks() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        folder, seed = json.loads(line)
        child = os.fork()
        if child == 0:
            _work(Path(folder), random.Random(seed))
        _send(child)
        _, status = os.waitpid(child, 0)
        _send(os.waitstatus_to_exitcode(status))


def _send(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _work(folder: Path, rng: random.Random) -> None:
    photos = sorted((folder / "photos").iterdir())
    reported = os.open(folder / "reported", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def log(**facts: object) -> None:
        os.write(reported, json.dumps(facts, default=str).encode() + b"\n")
        os.fsync(reported)

    def log_outcome(outcome: Outcome) -> None:
        log(photo=outcome.photo, state=outcome.state, released=outcome.released, why=outcome.reason)

    while True:
        with Collection.open(folder / "c.homing", extractor=tiny_extractor()) as collection:
            for _ in range(rng.randint(1, 4)):
                batch = rng.sample(photos, rng.randint(1, 4))
                job = rng.choice(("add", "activate", "activate", "remove", "search"))
                for each in batch if job in ("add", "activate") else []:
                    log(photo=each, state="coming", released=None)
                if job == "add":
                    collection.add(batch, on_outcome=log_outcome)
                elif job == "activate":
                    # The released file of a removed photo would block its next release to the same path.
                    out = str(rng.getrandbits(64) if any(map(_may_be_removed, batch)) else rng.randrange(3))
                    collection.activate(batch, folder / "out" / out, recipe=rng.choice(RECIPES), on_outcome=log_outcome)
                elif job == "remove":
                    known = [each for each in photos if _may_be_removed(each) and collection.select(each).ids]
                    to_remove = rng.sample(known, min(len(known), rng.randint(1, 4)))
                    for each in to_remove:
                        log(photo=each, state="removing", released=None)
                    for outcome in collection.remove(to_remove):
                        log_outcome(replace(outcome, released=None))
                else:
                    collection.search(batch[0])


def _may_be_removed(photo: Path) -> bool:
    return int(photo.stem) % 3 == 0


if __name__ == "__main__":
    _serve_forks()

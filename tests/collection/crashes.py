"""A process that adds, activates, removes and searches until it is killed, and what must hold afterwards."""

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
from homing.extractors import describe
from homing.photo import Photo

ROOT = Path(__file__).parents[2]
LONGEST = 0.4  # seconds that a process lives, at first


class Life:
    """A collection whose processes are killed again and again."""

    def __init__(self, folder: Path, photos: int = 60, seed: int = 0) -> None:
        self.folder, self.rng, self.longest = folder, random.Random(seed), LONGEST
        paths = tiny_photos(folder / "photos", photos, seed)
        Collection.create(folder / "c.homing", codebook=tiny_codebook(), extractor=tiny_extractor()).close()
        descriptors = describe(tiny_extractor(), [Photo.load(path).pixels() for path in paths])
        self.descriptors = dict(zip(map(str, paths), descriptors, strict=True))
        self.hashes = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
        self.seen: Counter[str] = Counter()

    def kill_once(self, nursery: Nursery) -> None:
        """Let a process work for a moment, kill it, and check that nothing it reported is lost."""
        nursery.bear(self.folder, self.rng.getrandbits(32))
        time.sleep(self.rng.uniform(0, self.longest))
        nursery.kill()
        self.verify()

    def verify(self) -> None:
        """Everything reported is there once, is found, and its file is whole; a repair leaves nothing to repair."""
        reported = self._told()
        assert not (failed := [each for each in reported if each["state"] == "failed"]), failed
        there, gone, activated, releases = set[str](), set[str](), set[str](), dict[str, str]()
        for each in reported:
            photo = each["photo"]
            if each["state"] in ("removing", "removed"):  # after the first it may be there or not
                there.discard(photo)
                activated.discard(photo)
                releases = {path: of for path, of in releases.items() if of != photo}
            elif each["state"] != "coming":  # which, like removing, was said before it was done
                there.add(photo)
                activated |= {photo} if each["state"] == "activated" else set()
                releases |= {each["released"]: photo} if each["released"] else {}
            (gone.add if each["state"] == "removed" else gone.discard)(photo)
        with Collection.open(self.folder / "c.homing", extractor=tiny_extractor()) as collection:
            self._verify_references(collection, sorted(there))
            assert not [each for each in gone if collection.folder.catalog.find(self.hashes[each]) is not None]
            self._verify_releases(collection, releases, activated)
        self._verify_check()
        self.seen |= Counter(each["state"] for each in reported)
        self.seen |= Counter(photos=len({each["photo"] for each in reported}))
        self.seen["kills"] += 1

    def _told(self) -> list[dict[str, Any]]:
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
        for path, near, at, own in zip(known, ids, distances, expected, strict=True):
            number = collection.folder.catalog.find(self.hashes[path])
            assert number is not None, f"{path} was reported of and is lost"
            np.testing.assert_allclose(at[near == number], [own], atol=1e-4, err_msg=f"{path} is not found once")

    def _verify_releases(self, collection: Collection, releases: dict[str, str], activated: set[str]) -> None:
        catalog = collection.folder.catalog
        for path, photo in releases.items():
            data = Path(path).read_bytes()
            number = catalog.find(self.hashes[photo])
            assert number is not None
            row = catalog.find_release(number, path, hashlib.sha256(data).hexdigest())
            assert row is not None, f"{path} was reported of and is not what was released"
            # One that was reported as unchanged may be activated by now: a recipe that did better, and was killed.
            expected = ("activated",) if photo in activated else ("activated", "unchanged")
            assert catalog.source_and_state(number)[1] in expected, f"{path} was reported of and is not noted"
            Photo.decode(data, path)
        for file in (self.folder / "out").glob("*/[!.]*"):
            data = file.read_bytes()
            if _may_be_removed(file):
                Photo.decode(data, str(file))  # its reference may be gone; it is whole all the same
            else:
                found = catalog.find_released(hashlib.sha256(data).hexdigest())
                assert found is not None, f"{file} is half written, or nobody knows it"

    def _verify_check(self) -> None:
        for left in self.folder.rglob(".*.tmp"):
            os.utime(left, (0, 0))  # old enough to be nobody's
        with Collection.open(self.folder / "c.homing", extractor=tiny_extractor()) as collection:
            found = collection.check(repair=True)
            assert all(finding.repaired for finding in found), found
            self.seen.update(finding.part for finding in found)
            assert collection.check() == []


class Nursery:
    """A process that has imported everything and forks the ones that are killed: they live at once."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._orders: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout
        self._child = 0

    def bear(self, folder: Path, seed: int) -> None:
        """Begin to work."""
        print(json.dumps([str(folder), seed]), file=self._orders, flush=True)
        self._child = int(self._answers.readline())

    def kill(self) -> None:
        """Kill what was born last; it must have lived until now."""
        os.kill(self._child, signal.SIGKILL)
        assert int(self._answers.readline()) == -signal.SIGKILL, "it ended by itself"


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Start one, and let it end."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.collection.crashes"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()


def _bear_children() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        folder, seed = json.loads(line)
        child = os.fork()
        if child == 0:
            _work(Path(folder), random.Random(seed))
        _answer(child)
        _, status = os.waitpid(child, 0)
        _answer(os.waitstatus_to_exitcode(status))


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _work(folder: Path, rng: random.Random) -> None:
    photos = sorted((folder / "photos").iterdir())
    reported = os.open(folder / "reported", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(**facts: object) -> None:
        os.write(reported, json.dumps(facts, default=str).encode() + b"\n")
        os.fsync(reported)

    def tell(outcome: Outcome) -> None:
        say(photo=outcome.photo, state=outcome.state, released=outcome.released, why=outcome.reason)

    while True:
        with Collection.open(folder / "c.homing", extractor=tiny_extractor()) as collection:
            for _ in range(rng.randint(1, 4)):
                some = rng.sample(photos, rng.randint(1, 4))
                job = rng.choice(("add", "activate", "activate", "remove", "search"))
                for each in some if job in ("add", "activate") else []:
                    say(photo=each, state="coming", released=None)
                if job == "add":
                    collection.add(some, report=tell)
                elif job == "activate":
                    # What is left of a removed photo must not be in the way of its next release.
                    out = str(rng.getrandbits(64) if any(map(_may_be_removed, some)) else rng.randrange(3))
                    collection.activate(some, folder / "out" / out, recipe=rng.choice(RECIPES), report=tell)
                elif job == "remove":
                    known = [each for each in photos if _may_be_removed(each) and collection.find(each).ids]
                    doomed = rng.sample(known, min(len(known), rng.randint(1, 4)))
                    for each in doomed:
                        say(photo=each, state="removing", released=None)
                    for outcome in collection.remove(doomed):
                        tell(replace(outcome, released=None))
                else:
                    collection.search(some[0])


def _may_be_removed(photo: Path) -> bool:
    return int(photo.stem) % 3 == 0


if __name__ == "__main__":
    _bear_children()

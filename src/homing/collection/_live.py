"""The index of what the catalogue holds now, whoever changed it: kept in memory, and as a snapshot on disk."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from homing._files import write_atomically
from homing.collection._writing import one_keeper
from homing.collection.folder import BACKGROUND_IDS, Folder
from homing.errors import BusyError, CollectionError, GoneError
from homing.indexes import FaissIndex, Index

if TYPE_CHECKING:
    from homing.collection.collection import Collection

Options = ParamSpec("Options")
Answer = TypeVar("Answer")


class Live(Protocol):
    """What every opened collection has, whatever it is kept in."""

    def current(self) -> Index:
        """The index of all references there are now."""

    def keep(self) -> None:
        """Leave the index for the next opening, if that pays off; nothing is lost where it fails."""


class LiveIndex:
    """An index that follows its catalogue change by change; safe to use from several threads."""

    def __init__(self, folder: Folder, *, anew: bool = False) -> None:
        """Begins with the snapshot, where there is a good one; `anew` with nothing, whatever there is."""
        self._folder, self._catalogue = folder, folder.catalogue
        self._snapshot = folder.path / "index.faiss"
        self._lock = Lock()
        self._index: FaissIndex | None = self._empty() if anew else None
        self._revision = 0  # of the catalogue, that the index stands for
        self._last = 0  # the newest reference in it
        self.kept = False  # whether the snapshot on disk is this index

    def current(self) -> FaissIndex:
        """The index, brought to what the catalogue holds now."""
        with self._lock:
            # Read first: what others record from here on may come once more next time, which changes nothing.
            revision = self._catalogue.revision
            index = self._begun() if self._index is None else self._index
            if self._revision != revision:
                if self._revision < self._catalogue.recoded:
                    index, self._revision, self._last = self._empty(), 0, 0
                self._index = None  # if this fails, what is half done is dropped
                self._follow(index)
                self._revision, self.kept = revision, False
            self._index = index
            return index

    def keep(self) -> None:
        """Keep a snapshot for the next opening, unless it is there, or somebody else is just keeping one."""
        if self._index is None or self.kept:
            return
        try:
            with one_keeper(self._folder.home), self._lock:
                # Else another thread could not bring it to what the catalogue holds, or this generation was forgotten.
                if self._index is not None and (self._folder.path / "collection.toml").is_file():
                    self._write(self._index.to_bytes())
        except BusyError:
            return
        except (OSError, CollectionError) as error:
            # A full or read-only disk: nothing is lost, the next opening goes on from an older snapshot, or from none.
            logging.getLogger("homing").warning("%s: no snapshot of the index was kept: %s", self._folder.path, error)

    def _follow(self, index: FaissIndex) -> None:
        # What comes is put in before what goes is taken out: whoever searches in between finds a photo or the one that
        # replaced it, and begins again if it is gone.
        before = self._last
        try:
            for ids, codes in self._catalogue.codes(after=before):
                index.add(codes, ids)
                self._last = int(ids[-1])
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:  # of NumPy, of FAISS
            path = self._folder.home
            raise CollectionError(
                f"{path} holds codes that are none of its codebook; mend it with: homing check {path} --repair"
            ) from error
        gone = self._catalogue.removed_since(self._revision)
        if (gone <= before).any():
            index.remove(gone[gone <= before])

    def _begun(self) -> FaissIndex:
        snapshot = self._read()
        return self._empty() if snapshot is None else snapshot

    def _read(self) -> FaissIndex | None:
        """The snapshot, if it is the one that the catalogue knows, and can be read."""
        self._revision = self._last = 0
        facts = [self._catalogue.fact(f"snapshot_{name}") for name in ("sha256", "revision", "last")]
        if None in facts or not self._snapshot.is_file():
            return None
        try:
            data = self._snapshot.read_bytes()
            if hashlib.sha256(data).hexdigest() != facts[0]:
                return None
            index = FaissIndex(self._folder.codebook, data)
            self._revision, self._last, self.kept = int(facts[1] or 0), int(facts[2] or 0), True
        except (OSError, ValueError, RuntimeError):  # of FAISS: kept by a version that this one cannot read
            return None
        return index

    def _empty(self) -> FaissIndex:
        index, background = FaissIndex(self._folder.codebook), self._folder.background
        if background is not None:
            index.add(background.codes, BACKGROUND_IDS + np.arange(len(background)))
        return index

    def _write(self, data: bytes) -> None:
        write_atomically(self._snapshot, data)
        self._catalogue.set_facts(
            snapshot_sha256=hashlib.sha256(data).hexdigest(),
            snapshot_revision=str(self._revision),
            snapshot_last=str(self._last),
        )
        self.kept = True


def settled(
    search: Callable[Concatenate[Collection, Options], Answer],
) -> Callable[Concatenate[Collection, Options], Answer]:
    """A search that begins again where a reference it found was removed before it could be named."""

    @wraps(search)
    def again(collection: Collection, /, *arguments: Options.args, **options: Options.kwargs) -> Answer:
        while True:
            revision = collection.folder.catalogue.revision
            try:
                return search(collection, *arguments, **options)
            except GoneError:
                if collection.folder.catalogue.revision == revision:
                    raise

    return again

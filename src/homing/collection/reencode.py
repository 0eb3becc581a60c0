"""Migrate the references of one generation to the next: new codes, and which releases keep their gain."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from homing import extractors
from homing._io.parallel import prefetch_map
from homing._io.paths import location
from homing.activation.release_check import MIN_LOSS_DECREASE
from homing.codebooks import Codebook
from homing.collection._transfer import PhotoRow, ReleaseRecord, Transfer
from homing.errors import PhotoError
from homing.extractors import Extractor, describe_images
from homing.objectives import has_objective, objective_for
from homing.photo import Photo, read_file

BATCH = 16
RELEASED_FILE_MISSING = "its released file is missing or was changed, so its gain cannot be measured"
_EARLIER_CODEBOOK = re.compile("(for codebook [0-9a-f]{12}: )+")
ProgressCallback = Callable[[], None]


class Reencoder:
    """Copies references and releases between the catalogs of two generations. Run again to resume."""

    def __init__(self, old: Codebook, new: Codebook, extractor: Extractor | None, advance: ProgressCallback) -> None:
        self._old, self._new = old, new
        self._given, self._advance = extractor, advance
        self.missing: list[str] = []
        """The reason for each reference that cannot be migrated."""

    @cached_property
    def extractor(self) -> Extractor:
        """The extractor of the next generation."""
        extractor = self._given or extractors.load(self._new.extractor)
        self._new.check(extractor)
        return extractor

    @property
    def same_network(self) -> bool:
        """Whether both codebooks belong to the same extractor, so that stored descriptors can be reused."""
        return self._old.extractor_fingerprint == self._new.extractor_fingerprint

    def run(self, old: Transfer, new: Transfer) -> None:
        """Update the next catalog to the current state of the old one."""
        self.missing.clear()
        self._reencode_photos(old, new)
        self._reassess_releases(old, new)

    def _reencode_photos(self, old: Transfer, new: Transfer) -> None:
        last = 0
        for rows in old.photos(self._old):
            known = new.sources(last, rows[-1].id)
            last = rows[-1].id
            # Remove before inserting: the same photo may have been added again under another id.
            new.remove(list(known.keys() - {row.id for row in rows}))
            new.update_sources([(row.source, row.id) for row in rows if known.get(row.id, row.source) != row.source])
            wanted = [row for row in rows if row.id not in known]
            self._report_done(len(rows) - len(wanted))
            size = len(rows) if self.same_network else BATCH
            for start in range(0, len(wanted), size):
                batch = wanted[start : start + size]
                if ready := self._with_new_codes(batch):
                    new.insert_photos(ready)
                self._report_done(len(batch))
        new.remove(list(new.sources(last)))

    def _report_done(self, count: int) -> None:
        for _ in range(count):
            self._advance()

    def _with_new_codes(self, rows: Sequence[PhotoRow]) -> list[PhotoRow]:
        """References with codes of the new codebook and descriptors of its extractor."""
        if self.same_network:
            vectors = [row.vector for row in rows]
            descriptors = _as_tensor(vectors)
        else:
            network_inputs = prefetch_map(lambda row: self._network_input(row.source, row.sha256), rows)
            readable = [
                (row, network_input)
                for row, network_input in zip(rows, network_inputs, strict=True)
                if network_input is not None
            ]
            if not readable:
                return []
            rows = [row for row, _ in readable]
            descriptors = describe_images(self.extractor, [network_input for _, network_input in readable])
            vectors = [vector.tobytes() for vector in descriptors.numpy().astype(np.float16)]
        codes = self._new.encode(descriptors)
        return [
            row._replace(code=code.tobytes(), vector=vector)
            for row, code, vector in zip(rows, codes, vectors, strict=True)
        ]

    def _network_input(self, source: str, sha256: str) -> Tensor | None:
        """The network input of a file, None (and noted as missing) if it is not the indexed one."""
        try:
            return self._read_network_input(source, sha256)
        except PhotoError as error:
            self.missing.append(str(error))
            return None

    def _read_network_input(self, path: str, sha256: str) -> Tensor:
        data = read_file(location(path))
        if hashlib.sha256(data).hexdigest() != sha256:
            raise PhotoError(f"{path}: the file has changed since it was indexed; restore the indexed file")
        return self.extractor.resize(Photo.decode(data, path).pixels())

    def _reassess_releases(self, old: Transfer, new: Transfer) -> None:
        for rows in old.releases():
            wanted = [row for row in rows if not new.has_release(row, ignoring_reason=RELEASED_FILE_MISSING)]
            for start in range(0, len(wanted), BATCH):
                batch = wanted[start : start + BATCH]
                originals = new.descriptors(np.array([row.photo for row in batch]))
                new.insert_releases(list(self._reassess([row for row in batch if row.photo in originals], originals)))

    def _reassess(self, rows: Sequence[ReleaseRecord], originals: dict[int, np.ndarray]) -> Iterator[ReleaseRecord]:
        """Re-evaluate releases with the new codebook: those that lost their gain become unchanged.

        Releases that lost it in an earlier migration can regain it, for example when migrating back.
        """
        for row in rows:
            was_activated = row.state == "activated" or row.vector is not None or row.reason == RELEASED_FILE_MISSING
            released = self._released_descriptor(row) if was_activated else None
            vector = None if released is None else released.numpy().astype(np.float16).tobytes()
            reason = row.reason
            if was_activated:
                reason = (
                    RELEASED_FILE_MISSING if released is None else self._why_no_gain(released, originals[row.photo][0])
                )
            recipe = _EARLIER_CODEBOOK.sub("", row.recipe)
            if was_activated and reason is None:
                yield row._replace(state="activated", reason=None, recipe=recipe, vector=vector)
            else:
                # The changed recipe name makes `activate` process them again.
                before = f"for codebook {self._old.fingerprint[:12]}: "
                yield row._replace(state="unchanged", reason=reason, recipe=before + recipe, vector=vector)

    def _released_descriptor(self, row: ReleaseRecord) -> Tensor | None:
        """The descriptor (1, D) of a released file: the stored one or, for another extractor, one of the file."""
        if self.same_network and row.vector is not None:
            return _as_tensor([row.vector])
        try:
            return describe_images(self.extractor, [self._read_network_input(row.path, row.sha256)])
        except PhotoError:
            return None

    def _why_no_gain(self, released: Tensor, original: np.ndarray) -> str | None:
        """The reason why a released photo has no gain with the new codebook, None if it has gain."""
        codebook = self._new
        if not has_objective(codebook):
            return f"'{codebook.spec}' stores descriptors without compression: nothing can be gained"
        first = torch.from_numpy(original.astype(np.float32))[None]
        if int(codebook.cells(released)) != int(codebook.cells(first)):
            return "it is in another cell than its original"
        objective = objective_for(codebook, first)
        before, after = float(objective(first)), float(objective(released))
        if after > before - MIN_LOSS_DECREASE * abs(before):
            return "it is no nearer to its code in the index than its original"
        return None


def _as_tensor(vectors: Sequence[bytes]) -> Tensor:
    """Convert stored descriptors to a tensor (N, D)."""
    numbers = np.frombuffer(b"".join(vectors), np.float16)
    return torch.from_numpy(numbers.reshape(len(vectors), -1).astype(np.float32))

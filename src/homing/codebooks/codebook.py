"""A frozen, trained quantiser, and the one file it is kept in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors
from torch import Tensor

from homing._files import read_metadata, write_atomically
from homing.errors import CodebookError
from homing.extractors import Extractor

UNRELATED_PAIRS = 10_000


class Codebook:
    """A trained quantiser that never changes: spec, centroids, codes, and the extractor it was trained for.

    Activated photos are tied to their codebook for ever, so it carries a fingerprint over all that decides a code.
    """

    def __init__(
        self,
        quantiser: bytes,
        unrelated: np.ndarray,
        *,
        name: str,
        spec: str,
        extractor: str,
        extractor_fingerprint: str,
    ) -> None:
        self.name, self.spec = name, spec
        self.extractor, self.extractor_fingerprint = extractor, extractor_fingerprint
        self.unrelated = unrelated
        self._quantiser = quantiser
        self._index = self.new_faiss()
        self.dim = int(self._index.d)
        self.fingerprint = hashlib.sha256(f"{spec} {extractor_fingerprint} ".encode() + quantiser).hexdigest()

    @classmethod
    def train(cls, descriptors: np.ndarray, *, spec: str, extractor: Extractor, name: str) -> Codebook:
        """Learn the quantiser of a FAISS factory string from (N, D) descriptors."""
        index = untrained(spec, dim=descriptors.shape[1], descriptors=len(descriptors))
        _expect_few(index)
        try:
            index.train(descriptors)
        except RuntimeError as error:
            raise CodebookError(f"{spec} cannot be trained on {len(descriptors)} descriptors; give it more") from error
        if not _keeps_codes(index, descriptors[:256]):
            raise CodebookError(f"FAISS keeps no codes for '{spec}'; choose a spec such as IVF1024,PQ8x8")
        some = descriptors[:UNRELATED_PAIRS]
        stored = index.sa_decode(index.sa_encode(some))
        # Half the set apart: photos that lie side by side in a folder are often of one series.
        unrelated = np.linalg.norm(np.roll(some, len(some) // 2, axis=0) - stored, axis=1)
        return cls(
            faiss.serialize_index(index).tobytes(),
            np.sort(unrelated).astype(np.float32),
            name=name,
            spec=spec,
            extractor=extractor.name,
            extractor_fingerprint=extractor.fingerprint,
        )

    def encode(self, descriptors: Tensor) -> np.ndarray:
        """The codes an index stores for (B, D) descriptors: (B, bytes) uint8."""
        codes: np.ndarray = self._index.sa_encode(_rows(descriptors))
        return codes

    def decode(self, codes: np.ndarray) -> Tensor:
        """The descriptors that stand behind (B, bytes) codes: (B, D)."""
        return torch.from_numpy(self._index.sa_decode(np.ascontiguousarray(codes)))

    def reconstruct(self, descriptors: Tensor) -> Tensor:
        """What the index would store for these descriptors, q(x): (B, D); nothing is added anywhere."""
        return self.decode(self.encode(descriptors)).to(descriptors.device)

    def cells(self, descriptors: Tensor) -> Tensor:
        """The cell each of (B, D) descriptors falls into: (B,); all zero for a spec without cells."""
        ivf = faiss.try_extract_index_ivf(self._index)
        if ivf is None:
            return torch.zeros(len(descriptors), dtype=torch.long)
        _, nearest = ivf.quantizer.search(self.turn(descriptors), 1)
        return torch.from_numpy(nearest[:, 0])

    def turn(self, descriptors: Tensor) -> np.ndarray:
        """Descriptors as the quantiser sees them: after the rotation or projection a spec may begin with."""
        rows = _rows(descriptors)
        if isinstance(self._index, faiss.IndexPreTransform):
            chain: Any = self._index.chain
            for position in range(chain.size()):
                rows = chain.at(position).apply(rows)
        return rows

    @property
    def has_cells(self) -> bool:
        """Whether an index looks into some cells only."""
        return faiss.try_extract_index_ivf(self._index) is not None

    @property
    def quantises_by_product(self) -> bool:
        """Whether codes come from a product quantiser, with or without a rotation or cells before it."""
        index = self._index
        if isinstance(index, faiss.IndexPreTransform):
            index = faiss.downcast_index(index.index)
        return isinstance(index, faiss.IndexPQ | faiss.IndexIVFPQ)

    def new_faiss(self) -> Any:
        """An empty FAISS index around this quantiser, for an engine to fill."""
        return faiss.deserialize_index(np.frombuffer(self._quantiser, dtype=np.uint8))

    def check(self, extractor: Extractor) -> None:
        """Refuse an extractor other than the one the codebook was trained for."""
        if extractor.fingerprint != self.extractor_fingerprint:
            raise CodebookError(
                f"codebook '{self.name}' was trained for extractor '{self.extractor}' "
                f"({self.extractor_fingerprint[:12]}), got '{extractor.name}' ({extractor.fingerprint[:12]}); "
                "train a codebook for it: homing codebook train PHOTOS --extractor NAME"
            )

    def to_bytes(self) -> bytes:
        """The codebook as the bytes of one safetensors file."""
        about = {
            "name": self.name,
            "spec": self.spec,
            "extractor": self.extractor,
            "extractor_fingerprint": self.extractor_fingerprint,
            "fingerprint": self.fingerprint,
        }
        tensors = {"quantiser": np.frombuffer(self._quantiser, dtype=np.uint8), "unrelated": self.unrelated}
        return save_safetensors(tensors, metadata={"homing.codebook": json.dumps(about, sort_keys=True)})

    @classmethod
    def from_bytes(cls, data: bytes, origin: str) -> Codebook:
        """The codebook kept in these bytes; `origin` names them in messages."""
        try:
            tensors = load_safetensors(data)
            about = read_metadata(data, "homing.codebook")
            fingerprint = about.pop("fingerprint")
            codebook = cls(tensors["quantiser"].tobytes(), tensors["unrelated"], **about)
        except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
            raise CodebookError(f"{origin} is not a homing codebook, or is damaged") from error
        if codebook.fingerprint != fingerprint or not (np.diff(codebook.unrelated) >= 0).all():
            raise CodebookError(f"{origin} is damaged: its contents do not have the fingerprint it states")
        return codebook

    @classmethod
    def read(cls, path: str | Path) -> Codebook:
        """The codebook kept in a file."""
        try:
            return cls.from_bytes(Path(path).read_bytes(), str(path))
        except OSError as error:
            raise CodebookError(f"cannot read codebook {path}: {error.strerror}") from error

    def write(self, path: Path) -> None:
        """Keep the codebook in a file."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, self.to_bytes())
        except OSError as error:
            raise CodebookError(f"cannot write codebook {path}: {error.strerror}") from error


def untrained(spec: str, *, dim: int, descriptors: int) -> Any:
    """An empty FAISS index of this spec; refuses a spec that makes no sense, or that needs more descriptors."""
    try:
        index = faiss.index_factory(dim, spec)
    except RuntimeError as error:
        raise CodebookError(f"'{spec}' is no FAISS factory string for {dim}-d descriptors") from error
    ivf = faiss.try_extract_index_ivf(index)
    if ivf is not None and ivf.nlist < 1:
        raise CodebookError(f"'{spec}' has no cells; give it at least one")
    needed = max(256, ivf.nlist if ivf is not None else 0)
    if descriptors < needed:
        raise CodebookError(
            f"{spec} needs at least {needed} descriptors to learn from, got {descriptors}; "
            "give it more photos, or more crops of them with --descriptors"
        )
    return index


def _expect_few(index: Any) -> None:
    """FAISS warns, line after line, of fewer than 39 photos per centroid; whoever trains on so few knows."""
    inner = faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index
    for clustering in (getattr(inner, "cp", None), getattr(getattr(inner, "pq", None), "cp", None)):
        if clustering is not None:
            clustering.min_points_per_centroid = 1


def _keeps_codes(index: Any, descriptors: np.ndarray) -> bool:
    """Whether an index filled with codes answers as one filled with descriptors: for some families it does not."""
    by_descriptors, by_codes = faiss.clone_index(index), faiss.clone_index(index)
    inner = faiss.downcast_index(by_codes.index) if isinstance(by_codes, faiss.IndexPreTransform) else by_codes
    try:
        by_descriptors.add(descriptors)
        inner.add_sa_codes(index.sa_encode(descriptors), np.arange(len(descriptors)))
    except RuntimeError:
        return False
    by_codes.ntotal = inner.ntotal
    (_, expected), (_, found) = (each.search(descriptors[:32], 1) for each in (by_descriptors, by_codes))
    return bool((expected == found).mean() > 0.9)  # but for ties


def _rows(descriptors: Tensor) -> np.ndarray:
    return np.ascontiguousarray(descriptors.detach().cpu().numpy(), dtype=np.float32)

"""Codebook: a frozen, trained quantizer and its file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors, save as save_safetensors
from torch import Tensor

from homing._io.files import read_safetensors_metadata, write_atomically
from homing.codebooks.faiss_training import train_quantizer
from homing.codebooks.null_distribution import NO_PAIRS, NullDistribution
from homing.codebooks.quantizer import Family, Quantizer, Transform, affine, compose, to_torch
from homing.errors import CodebookError
from homing.extractors import Extractor, ExtractorLike

FORMAT = 2
"""The version of codebook files."""


class Codebook:
    """A trained quantizer that never changes, for the descriptors of one extractor.

    Activated photos depend on their codebook, so it has a fingerprint over everything that determines a code.
    """

    def __init__(
        self,
        quantizer: bytes,
        null_distribution: NullDistribution,
        *,
        name: str,
        spec: str,
        extractor: str,
        extractor_fingerprint: str,
    ) -> None:
        self.name, self.spec = name, spec
        self.extractor, self.extractor_fingerprint = extractor, extractor_fingerprint
        self.null_distribution = null_distribution
        self._bytes = quantizer
        self.quantizer = Quantizer(self.new_faiss(), spec)
        self.dim = int(self.quantizer.index.d)
        self.code_size = int(self.quantizer.codec.sa_code_size())
        """Bytes of one code, including its cell."""
        self.family: Family = self.quantizer.family
        """The part of a descriptor that codes preserve; it determines the objective of activation."""
        self.has_cells = self.quantizer.ivf is not None
        """Whether an index searches some of its cells only (IVF)."""
        self.is_product = isinstance(self.quantizer.codec, faiss.IndexPQ)
        """Whether codes are those of a product quantizer without cells."""
        self.fingerprint = hashlib.sha256(f"{spec} {extractor_fingerprint} ".encode() + quantizer).hexdigest()

    @classmethod
    def train(
        cls,
        descriptors: np.ndarray,
        *,
        spec: str,
        extractor: ExtractorLike,
        name: str,
        photos: np.ndarray | None = None,
    ) -> Codebook:
        """Train the quantizer of a FAISS factory string on (N, D) descriptors.

        The null distribution is measured on (P, D) descriptors of distinct `photos`, by default on the training set.
        """
        from homing import extractors

        network = extractors.load(extractor)
        quantizer = train_quantizer(spec, descriptors)
        return cls(
            faiss.serialize_index(quantizer.index).tobytes(),
            NullDistribution.measure(quantizer, descriptors if photos is None else photos),
            name=name,
            spec=spec,
            extractor=network.name,
            extractor_fingerprint=network.fingerprint,
        )

    @classmethod
    def from_faiss(
        cls,
        index: faiss.Index | str | Path,
        *,
        extractor: ExtractorLike = "homing-1",
        name: str | None = None,
        descriptors: Tensor | np.ndarray | None = None,
    ) -> Codebook:
        """The codebook of a trained FAISS index or of a file of one; its vectors are left out, the index is unchanged.

        `descriptors` (N, D) of unrelated photos measure the null distribution, from which false-match probabilities are
        computed: 1,000 give a usable one, more are better. They are optional for the bundled extractors, where
        probabilities of codes are then overestimated. Raises CodebookError for an index that is not trained, does not
        fit the extractor, or is of a family that is not supported.
        """
        from homing import extractors
        from homing.codebooks.foreign_index import import_index

        return import_index(index, extractors.load(extractor), name=name, descriptors=descriptors)

    def with_null_distribution(self, photos: np.ndarray, related: np.ndarray = NO_PAIRS) -> Codebook:
        """A copy of the codebook whose null distribution is measured on (P, D) descriptors of unrelated photos.

        `related` (R, 2) lists pairs of rows to exclude.
        """
        return Codebook(
            self._bytes,
            NullDistribution.measure(self.quantizer, photos, related),
            name=self.name,
            spec=self.spec,
            extractor=self.extractor,
            extractor_fingerprint=self.extractor_fingerprint,
        )

    def encode(self, descriptors: Tensor) -> np.ndarray:
        """The codes of (B, D) descriptors: (B, bytes) uint8."""
        return self.quantizer.encode(_rows(descriptors))

    def decode(self, codes: np.ndarray) -> Tensor:
        """The reconstructions of (B, bytes) codes: (B, D)."""
        if not self.quantizer.decodes:
            raise CodebookError(f"the codes of '{self.spec}' are signs and cannot be decoded")
        return torch.from_numpy(self.quantizer.decode(np.ascontiguousarray(codes)))

    def reconstruct(self, descriptors: Tensor) -> Tensor:
        """The reconstructions q(x) of (B, D) descriptors, as an index would store them: (B, D)."""
        return self.decode(self.encode(descriptors)).to(descriptors.device)

    def cells(self, descriptors: Tensor) -> Tensor:
        """The cell of each of (B, D) descriptors: (B,); all zero for a spec without cells."""
        if not self.has_cells:
            return torch.zeros(len(descriptors), dtype=torch.long)
        _, nearest = self.quantizer.ivf.quantizer.search(self.transform(descriptors), 1)
        return torch.from_numpy(nearest[:, 0])

    def centroids(self, descriptors: Tensor) -> Tensor:
        """The centroid of the cell of each of (B, D) descriptors: (B, D)."""
        centroids = self.quantizer.ivf.quantizer.reconstruct_batch(self.cells(descriptors).numpy())
        return torch.from_numpy(self.quantizer.inverse_transform(centroids)).to(descriptors.device)

    @cached_property
    def all_centroids(self) -> Tensor:
        """The centroids of all cells: (cells, D)."""
        ivf = self.quantizer.ivf
        return torch.from_numpy(self.quantizer.inverse_transform(ivf.quantizer.reconstruct_n(0, ivf.nlist)))

    def sample_reconstructions(self, cells: Tensor, count: int) -> Tensor:
        """Reconstructions of random codes in each of (B,) cells: (B, count, D).

        Empty, (B, 0, D), if cells store full descriptors or codes are not of residuals.
        """
        if self.family == "cells" or not self.quantizer.ivf.by_residual:
            return torch.empty(len(cells), 0, self.dim)
        return self.decode(self.sample_codes(cells.cpu().numpy(), count)).reshape(len(cells), count, self.dim)

    def sample_codes(self, cells: np.ndarray, count: int) -> np.ndarray:
        """`count` random codes in each of (B,) cells, the same in all cells: (B · count, bytes)."""
        # FAISS's layout: the cell as little-endian bytes, then the code.
        prefix = cells.astype("<i8")[:, None].view(np.uint8)[:, : self.quantizer.ivf.coarse_code_size()]
        size = (count, self.quantizer.codec.code_size)
        sampled = np.random.default_rng(0).integers(256, size=size, dtype=np.uint8)
        return np.hstack([prefix.repeat(count, axis=0), np.tile(sampled, (len(cells), 1))])

    def transform(self, descriptors: Tensor) -> np.ndarray:
        """Descriptors after the transforms (rotation, projection) that a spec may begin with."""
        return self.quantizer.transform(_rows(descriptors))

    def torch_transform(self, device: torch.device) -> Transform:
        """The transforms of the spec as a differentiable function of (B, D) descriptors."""
        return compose([to_torch(each, device) for each in self.quantizer.transforms])

    @cached_property
    def codewords(self) -> Tensor:
        """The codewords of each sub-space of a product quantizer, after transforms: (M, 2^bits, d/M)."""
        product = self.quantizer.codec.pq
        codewords = faiss.vector_to_array(product.centroids).reshape(product.M, product.ksub, product.dsub)
        return torch.from_numpy(codewords)

    def pq_codes(self, descriptors: Tensor) -> Tensor:
        """The codeword indices of (B, D) descriptors in each sub-space: (B, M)."""
        product = self.quantizer.codec.pq
        codes = faiss.unpack_bitstrings(self.encode(descriptors), product.M, product.nbits)
        return torch.from_numpy(codes.astype(np.int64))

    def new_faiss(self) -> Any:
        """A new, empty FAISS index with this quantizer."""
        return faiss.deserialize_index(np.frombuffer(self._bytes, dtype=np.uint8))

    def check(self, extractor: Extractor) -> None:
        """Refuse an extractor other than the one the codebook was trained for."""
        if extractor.fingerprint != self.extractor_fingerprint:
            hint = "train a codebook for it: homing codebook train PHOTOS --extractor NAME"
            if extractor.name == self.extractor:
                hint = (
                    "it has the same name but other weights: use the version of homing, or the file, "
                    "that the codebook was trained with, or make a new collection from the originals"
                )
            raise CodebookError(
                f"codebook '{self.name}' was trained for extractor '{self.extractor}' "
                f"({self.extractor_fingerprint[:12]}), got '{extractor.name}' ({extractor.fingerprint[:12]}); {hint}"
            )

    def to_bytes(self) -> bytes:
        """The codebook as the bytes of one safetensors file."""
        about = {
            "format": FORMAT,
            "name": self.name,
            "spec": self.spec,
            "extractor": self.extractor,
            "extractor_fingerprint": self.extractor_fingerprint,
            "fingerprint": self.fingerprint,
        }
        tensors = {"quantizer": np.frombuffer(self._bytes, dtype=np.uint8), **self.null_distribution.to_tensors()}
        return save_safetensors(tensors, metadata={"homing.codebook": json.dumps(about, sort_keys=True)})

    def __reduce__(self) -> tuple[Callable[[bytes, str], Codebook], tuple[bytes, str]]:
        """Pickle the codebook as the bytes of its file."""
        return Codebook.from_bytes, (self.to_bytes(), self.name)

    @classmethod
    def from_bytes(cls, data: bytes, origin: str) -> Codebook:
        """The codebook in these bytes; `origin` names them in messages."""
        try:
            tensors = load_safetensors(data)
            about = read_safetensors_metadata(data, "homing.codebook")
            if (version := about.pop("format", 1)) != FORMAT:
                raise CodebookError(f"{origin} is a codebook of format {version}, this homing reads {FORMAT}")
            fingerprint = about.pop("fingerprint")
            codebook = cls(tensors["quantizer"].tobytes(), NullDistribution.from_tensors(tensors), **about)
        except (SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
            raise CodebookError(f"{origin} is not a homing codebook, or is damaged") from error
        if codebook.fingerprint != fingerprint or not codebook.null_distribution.is_valid:
            raise CodebookError(f"{origin} is damaged: its contents do not match its fingerprint")
        return codebook

    @classmethod
    def read(cls, path: str | Path) -> Codebook:
        """Read a codebook from a file."""
        try:
            return cls.from_bytes(Path(path).read_bytes(), str(path))
        except OSError as error:
            raise CodebookError(f"cannot read codebook {path}: {error.strerror}") from error

    def write(self, path: Path) -> None:
        """Write the codebook to a file."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, self.to_bytes())
        except OSError as error:
            raise CodebookError(f"cannot write codebook {path}: {error.strerror}") from error


def _rows(descriptors: Tensor) -> np.ndarray:
    return np.ascontiguousarray(descriptors.detach().cpu().numpy(), dtype=np.float32)


def as_arrays(codebook: Codebook) -> tuple[dict[str, np.ndarray], str]:
    """The arrays of a product-quantizer codebook, and the NumPy script that encodes (N, D) descriptors `x`."""
    quantizer, codec = codebook.quantizer, codebook.quantizer.codec
    if type(codec) not in (faiss.IndexPQ, faiss.IndexIVFPQ):
        raise CodebookError(
            f"'{codebook.spec}' is not a product quantizer, the only kind that is exported as arrays; "
            "export it as a FAISS index: --format faiss"
        )
    arrays, lines = {"codewords": codebook.codewords.numpy()}, ['a = np.load("quantizer.npz")']
    if quantizer.transforms:
        if not all(isinstance(each, faiss.LinearTransform) for each in quantizer.transforms):
            raise CodebookError(
                f"'{codebook.spec}' has a transform that is not linear; export it as a FAISS index: --format faiss"
            )
        matrix, shift = affine(quantizer.transform, codebook.dim)
        arrays |= {"matrix": np.ascontiguousarray(matrix.T), "shift": shift}
        lines.append('x = x @ a["matrix"].T + a["shift"]  # rotated, or projected')
    if codebook.has_cells:
        arrays["centroids"] = quantizer.ivf.quantizer.reconstruct_n(0, quantizer.ivf.nlist)
        nearest = 'cells = ((a["centroids"] ** 2).sum(1) - 2 * x @ a["centroids"].T).argmin(1)'
        lines.append(f"{nearest}  # the nearest centroids")
        if codec.by_residual:
            lines.append('x = x - a["centroids"][cells]  # codewords approximate residuals')
    lines += [
        'parts = x.reshape(len(x), len(a["codewords"]), -1).swapaxes(0, 1)  # one for each sub-space',
        'indices = [((c**2).sum(1) - 2 * p @ c.T).argmin(1) for p, c in zip(parts, a["codewords"])]',
        f"bits = (np.stack(indices, 1)[..., None] >> np.arange({codec.pq.nbits})) & 1",
        'codes = np.packbits(bits.reshape(len(x), -1).astype(np.uint8), axis=1, bitorder="little")',
    ]
    if codebook.has_cells:
        number = f'cells.astype("<u8")[:, None].view(np.uint8)[:, :{codebook.code_size - codec.code_size}]'
        lines.append(f"number = {number}  # of the cell, little-endian")
        lines.append("codes = np.concatenate([number, codes], axis=1)")
    return arrays, "\n".join(lines)

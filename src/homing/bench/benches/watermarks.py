"""The watermarks bench: the same photos activated, or watermarked with an identifier, at the same PSNR."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

from homing import codebooks, extractors
from homing.activation.recipe import PAPER_BUDGET
from homing.bench.protocol.config import PASSIVE, BenchConfig, CodebookRun, codebook_runs
from homing.bench.protocol.copies import describe_copies
from homing.bench.protocol.descriptor_set import compute_descriptor_set, read_descriptor_set
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.release import ReleaseResult, release_modified
from homing.bench.scores import Interval, rank_of, recall_intervals
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError, UnknownNameError
from homing.extractors import Extractor
from homing.photo import find_photos
from homing.watermarks.base import Watermark, identifier
from homing.watermarks.embedding import mark
from homing.watermarks.hidden import HiddenWatermark
from homing.watermarks.settings import BITS
from homing.watermarks.ssl import SSLDecoder, SSLWatermark

LABELS = [edit.label for edit in PAPER]
WATERMARKS = ("ssl", "hidden")
METHODS = {PASSIVE: PASSIVE, "activated": "paper"}  # methods by index search, with their recipes
MAX_WHITENING_ROWS = 10_000  # distractors; enough to estimate a covariance in 512 dimensions


@dataclass(frozen=True, kw_only=True)
class WatermarksBench(BenchConfig):
    """The configuration of the watermarks bench, and the watermarks to compare activation with.

    `hidden` is a file of HiDDeN's networks, by default the bundled one. `ssl_extractor` is the network of SSL
    watermarks: networks that were not trained to be invariant to edits carry them better. `key` is their secret key.
    """

    watermarks: Sequence[str] = WATERMARKS
    hidden: Path | None = None
    ssl_extractor: str = "imagenet-lite0"
    key: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.watermarks:
            if name not in WATERMARKS:
                raise UnknownNameError("watermark", name, WATERMARKS)
        if not 0 <= self.key < 2**63:
            raise HomingError(f"a key is a whole number from 0 to 2^63 - 1, got {self.key}")


@dataclass(frozen=True, kw_only=True)
class WatermarksRow:
    """Recall by edit of the copies of the files of one method.

    With a watermark a copy is found if all bits of its identifier are decoded correctly; `bit_accuracy` is the share of
    correct bits. With an index it is found if its original is the nearest reference with one probe. PSNR and SSIM are
    means over the modified files.
    """

    method: str
    codebook: str | None
    index: str | None
    recall: dict[str, float]
    interval: dict[str, Interval]
    mean: float
    mean_interval: Interval
    bit_accuracy: dict[str, float] | None
    photos: int
    modified: int
    psnr: float | None
    ssim: float | None
    seconds_per_photo: float | None


@dataclass(frozen=True)
class MethodResult:
    """A row and its copies (P, E): names of the files, whether each copy is found, and its number of correct bits."""

    row: WatermarksRow
    sources: list[str]
    correct: np.ndarray
    correct_bits: np.ndarray | None


@dataclass(frozen=True)
class WatermarksResult:
    """The results of the bench: for each codebook passive and activated, then each watermark."""

    bench: WatermarksBench
    runs: list[CodebookRun]
    method_results: list[MethodResult]
    seconds: float


def run_watermarks_bench(bench: WatermarksBench, progress: Progress) -> WatermarksResult:
    """Measure each method; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    # Load networks before any work: a missing one must not end the run hours later.
    hidden = _hidden(bench) if "hidden" in bench.watermarks else None
    network = _ssl_network(bench) if "ssl" in bench.watermarks else None
    prepared_runs = codebook_runs(bench, progress)
    ssl = None if network is None else _ssl(bench, network, progress)
    runs: list[CodebookRun] = []
    method_results: list[MethodResult] = []
    for run in prepared_runs:
        runs.append(run)
        recipes = run.supported_recipes(list(METHODS.values()))
        method_results += [
            _measure_search(run, method, recipe) for method, recipe in METHODS.items() if recipe in recipes
        ]
    method_results += [_measure_watermark(runs[0], watermark) for watermark in (ssl, hidden) if watermark is not None]
    return WatermarksResult(bench, runs, method_results, time.perf_counter() - started)


def _measure_search(run: CodebookRun, method: str, recipe: str) -> MethodResult:
    """Measure a method whose copies are found by index search, with one probe."""
    release_result = run.release(recipe)
    copies = run.copies(release_result, PAPER, recipe)
    found = run.search(copies, 1, 1, recipe)
    correct = (
        rank_of(found.ids, run.true_ids(release_result).repeat(len(PAPER))).reshape(len(release_result.files), -1) == 0
    )
    return _method_result(method, run.codebook, release_result, correct, None)


def _measure_watermark(run: CodebookRun, watermark: Watermark) -> MethodResult:
    """Measure a watermark, whose copies are found by decoding their identifier."""
    folder = run.config.out / "released" / "watermarks" / watermark.name
    with run.progress(f"{watermark.name}: watermarking", len(run.originals)) as advance:
        release_result = release_modified(
            run.originals,
            folder,
            modify=partial(mark, watermark=watermark, budget=PAPER_BUDGET),
            key=f"{watermark.fingerprint} {PAPER_BUDGET}",
            advance=advance,
        )
    if not release_result.files:
        raise HomingError(f"no photo could be watermarked; the first error: {release_result.failures[0]}")
    run.failures.extend(release_result.failures)
    with run.progress(f"{watermark.name}: editing", len(release_result.files)) as advance:
        scores = describe_copies(watermark.decoder, release_result.files, PAPER, run.config.out, advance)
    files = {original.source: original.file for original in run.originals}
    hashes = [sha256(files[each.source].read_bytes()).hexdigest() for each in release_result.files]
    messages = torch.stack([identifier(each, watermark.decoder.dim) for each in hashes]).numpy()
    correct_bits = ((scores > 0) == messages[:, None]).sum(axis=2)
    return _method_result(watermark.name, None, release_result, correct_bits == watermark.decoder.dim, correct_bits)


def _method_result(
    method: str,
    codebook: Codebook | None,
    release_result: ReleaseResult,
    correct: np.ndarray,
    correct_bits: np.ndarray | None,
) -> MethodResult:
    intervals = recall_intervals(correct)
    row = WatermarksRow(
        method=method,
        codebook=None if codebook is None else codebook.name,
        index=None if codebook is None else codebook.spec,
        recall=dict(zip(LABELS, correct.mean(axis=0).tolist(), strict=True)),
        interval=dict(zip(LABELS, intervals.by_edit, strict=True)),
        mean=float(correct.mean()),
        mean_interval=intervals.mean,
        bit_accuracy=None
        if correct_bits is None
        else dict(zip(LABELS, (correct_bits / BITS).mean(axis=0).tolist(), strict=True)),
        photos=len(release_result.files),
        modified=len(release_result.qualities),
        psnr=fmean(quality.psnr for quality in release_result.qualities) if release_result.qualities else None,
        ssim=fmean(quality.ssim for quality in release_result.qualities) if release_result.qualities else None,
        seconds_per_photo=None if method == PASSIVE else release_result.seconds / len(release_result.files),
    )
    return MethodResult(row, [file.source for file in release_result.files], correct, correct_bits)


def _hidden(bench: WatermarksBench) -> HiddenWatermark:
    watermark = HiddenWatermark.load(bench.hidden)
    if watermark.decoder.dim != BITS:
        raise HomingError(f"{bench.hidden} hides {watermark.decoder.dim} bits; train one with --bits {BITS}")
    return watermark


def _ssl_network(bench: WatermarksBench) -> Extractor:
    network = extractors.load(bench.ssl_extractor)
    if network.dim < BITS:
        raise HomingError(f"{BITS} bits need as many dimensions, '{network.name}' has {network.dim}; choose another")
    if network.name not in codebooks.available() and bench.distractor_photos is None:
        raise HomingError(
            f"'{network.name}' has no bundled distractors to whiten SSL watermarks on; give photos with "
            "--distractor-photos"
        )
    return network


def _ssl(bench: WatermarksBench, network: Extractor, progress: Progress) -> SSLWatermark:
    """The SSL watermark, whitened on the distractors bundled with the network, or else on those of the bench."""
    if network.name in codebooks.available():
        book = codebooks.load(network.name)
        rows = book.decode(codebooks.bundled_distractors(book).codes[:MAX_WHITENING_ROWS]).numpy()
    elif bench.distractor_photos is not None and bench.distractor_photos.is_file():
        rows = read_descriptor_set(bench.distractor_photos, network, MAX_WHITENING_ROWS).descriptors
    else:
        assert bench.distractor_photos is not None, "checked with the network"
        photos = find_photos([bench.distractor_photos])[:MAX_WHITENING_ROWS]
        with progress(f"{network.name}: describing the distractors", len(photos)) as advance:
            rows = compute_descriptor_set(network, photos, len(photos), bench.out, advance).descriptors
    return SSLWatermark(SSLDecoder(network, rows, bits=BITS, key=bench.key))

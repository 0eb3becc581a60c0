"""The watermarks bench: the same photos activated, or with an identifier hidden in them, at the same PSNR."""

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
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError, UnknownNameError
from homing.evaluation.protocol.copies import describe_copies
from homing.evaluation.protocol.releasing import ReleasedFiles, release_moved
from homing.evaluation.protocol.setting import PASSIVE, Setting, Subject, subjects
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import find_strangers, read_strangers
from homing.evaluation.scores import Interval, rank_of, recall_intervals
from homing.extractors import Extractor
from homing.photo import gather
from homing.watermarks.base import Watermark, identifier
from homing.watermarks.hidden import HiddenWatermark
from homing.watermarks.marking import mark
from homing.watermarks.settings import BITS
from homing.watermarks.ssl import Carriers, SslWatermark

LABELS = [edit.label for edit in PAPER]
WATERMARKS = ("ssl", "hidden")
METHODS = {PASSIVE: PASSIVE, "activated": "paper"}  # by an index, each with its recipe
WHITENED_ON = 10_000  # strangers at most: more say nothing new of the variance of 512 numbers


@dataclass(frozen=True, kw_only=True)
class WatermarksBench(Setting):
    """The setting, and which watermarks stand beside activation.

    `hidden` is a file of HiDDeN's networks, by default that inside the package. `ssl_extractor` names the network of
    SSL watermarks: one that was not taught to hold still under edits is moved further. Their key is a number.
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
class Row:
    """How many copies of the files of one method come home, by edit.

    With a watermark a copy is home when all bits of its identifier are read right; the share of single bits stands
    beside it. With an index it is home when its original is found first with one probe. PSNR and SSIM are means over
    the files whose pixels moved.
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
    moved: int
    psnr: float | None
    ssim: float | None
    seconds_per_photo: float | None


@dataclass(frozen=True)
class Measured:
    """A row and the copies behind it: the files' names, which copies (P, E) came home, and right bits of each."""

    row: Row
    sources: list[str]
    home: np.ndarray
    right: np.ndarray | None


@dataclass(frozen=True)
class WatermarksResult:
    """What a bench found: for each codebook passive and activated, then each watermark."""

    bench: WatermarksBench
    subjects: list[Subject]
    measured: list[Measured]
    seconds: float


def run_watermarks_bench(bench: WatermarksBench, stage: Stage) -> WatermarksResult:
    """Measure each method in turn; what was described and released stays in the out folder for the next run."""
    started = time.perf_counter()
    # Before any work: hours later it would be late to hear that a network is missing.
    hidden = _hidden(bench) if "hidden" in bench.watermarks else None
    network = _ssl_network(bench) if "ssl" in bench.watermarks else None
    waiting = subjects(bench, stage)
    ssl = None if network is None else _ssl(bench, network, stage)
    met: list[Subject] = []
    measured: list[Measured] = []
    for subject in waiting:
        met.append(subject)
        ways = subject.ways(list(METHODS.values()))
        measured += [_searched(subject, method, recipe) for method, recipe in METHODS.items() if recipe in ways]
    measured += [_read(met[0], watermark) for watermark in (ssl, hidden) if watermark is not None]
    return WatermarksResult(bench, met, measured, time.perf_counter() - started)


def _searched(subject: Subject, method: str, recipe: str) -> Measured:
    """Files that are found by searching for their copies, with one probe."""
    made = subject.release(recipe)
    copies = subject.copies(made, PAPER, recipe)
    found = subject.search(copies, 1, 1, recipe)
    home = rank_of(found.ids, subject.own(made).repeat(len(PAPER))).reshape(len(made.files), -1) == 0
    return _measured(method, subject.codebook, made, home, None)


def _read(subject: Subject, watermark: Watermark) -> Measured:
    """Files that are found by reading the identifier of their copies."""
    folder = subject.setting.out / "released" / "watermarks" / watermark.name
    with subject.stage(f"{watermark.name}: hiding identifiers", len(subject.originals)) as advance:
        made = release_moved(
            subject.originals,
            folder,
            move=partial(mark, watermark=watermark, budget=PAPER_BUDGET),
            key=f"{watermark.fingerprint} {PAPER_BUDGET}",
            advance=advance,
        )
    if not made.files:
        raise HomingError(f"no photo could be given a watermark; the first says: {made.failures[0]}")
    subject.failures.extend(made.failures)
    with subject.stage(f"{watermark.name}: editing", len(made.files)) as advance:
        scores = describe_copies(watermark.decoder, made.files, PAPER, subject.setting.out, advance)
    files = {original.source: original.file for original in subject.originals}
    hashes = [sha256(files[each.source].read_bytes()).hexdigest() for each in made.files]
    messages = torch.stack([identifier(each, watermark.decoder.dim) for each in hashes]).numpy()
    right = ((scores > 0) == messages[:, None]).sum(axis=2)
    return _measured(watermark.name, None, made, right == watermark.decoder.dim, right)


def _measured(
    method: str, codebook: Codebook | None, made: ReleasedFiles, home: np.ndarray, right: np.ndarray | None
) -> Measured:
    intervals = recall_intervals(home)
    row = Row(
        method=method,
        codebook=None if codebook is None else codebook.name,
        index=None if codebook is None else codebook.spec,
        recall=dict(zip(LABELS, home.mean(axis=0).tolist(), strict=True)),
        interval=dict(zip(LABELS, intervals.by_edit, strict=True)),
        mean=float(home.mean()),
        mean_interval=intervals.mean,
        bit_accuracy=None if right is None else dict(zip(LABELS, (right / BITS).mean(axis=0).tolist(), strict=True)),
        photos=len(made.files),
        moved=len(made.qualities),
        psnr=fmean(quality.psnr for quality in made.qualities) if made.qualities else None,
        ssim=fmean(quality.ssim for quality in made.qualities) if made.qualities else None,
        seconds_per_photo=None if method == PASSIVE else made.seconds / len(made.files),
    )
    return Measured(row, [file.source for file in made.files], home, right)


def _hidden(bench: WatermarksBench) -> HiddenWatermark:
    watermark = HiddenWatermark.load(bench.hidden)
    if watermark.decoder.dim != BITS:
        raise HomingError(f"{bench.hidden} hides {watermark.decoder.dim} bits; train one with --bits {BITS}")
    return watermark


def _ssl_network(bench: WatermarksBench) -> Extractor:
    network = extractors.load(bench.ssl_extractor)
    if network.dim < BITS:
        raise HomingError(f"{BITS} bits need as many dimensions, '{network.name}' has {network.dim}; choose another")
    return network


def _ssl(bench: WatermarksBench, network: Extractor, stage: Stage) -> SslWatermark:
    """Whitened on the strangers that come with the network, or where none do on those of the bench."""
    if network.name in codebooks.available():
        book = codebooks.load(network.name)
        rows = book.decode(codebooks.bundled_background(book).codes[:WHITENED_ON]).numpy()
    elif bench.background.is_file():
        rows = read_strangers(bench.background, network, WHITENED_ON).descriptors
    else:
        photos = gather([bench.background])[:WHITENED_ON]
        with stage(f"{network.name}: describing the background", len(photos)) as advance:
            rows = find_strangers(network, photos, len(photos), bench.out, advance).descriptors
    return SslWatermark(Carriers(network, rows, bits=BITS, key=bench.key))

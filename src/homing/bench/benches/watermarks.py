"""The watermarks bench: the same photos activated, or watermarked with an identifier, at the same PSNR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

from homing import codebooks, extractors
from homing._options import Option, setting
from homing.activation.recipe import PAPER_BUDGET
from homing.bench.base import PASSIVE, IndexSettings, Progress
from homing.bench.codebook_bench import CodebookBench, codebook_runs
from homing.bench.data import describe_copies, load_descriptor_set
from homing.bench.figures import Figure, share_bars
from homing.bench.report import CsvTable
from homing.bench.runs import LABELS, CodebookRun, ReleaseResult, recall_shares, release_modified
from homing.bench.scores import PAPER_INDEX, published, published_recall, recall_columns
from homing.bench.tables import Columns, Row, Table, by_label, fixed, number, transposed, with_interval
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.training.settings import BITS
from homing.watermarks.base import Watermark, identifier, mark
from homing.watermarks.hidden import HiddenWatermark
from homing.watermarks.ssl import SSLDecoder, SSLWatermark

WATERMARKS = {"ssl": "SSL watermark", "hidden": "HiDDeN"}
METHODS = {PASSIVE: PASSIVE, "activated": "paper"}  # methods by index search, with their recipes
MAX_WHITENING_ROWS = 10_000  # distractors; enough to estimate a covariance in 512 dimensions


@dataclass(frozen=True, kw_only=True)
class WatermarksSettings(IndexSettings):
    """The watermarks to compare activation with.

    Networks that were not trained to be invariant to edits carry SSL watermarks better.
    """

    watermarks: Sequence[str] = setting(
        Option("Comma-separated watermarks.", read=str, choices=lambda: WATERMARKS, kind="watermark"), tuple(WATERMARKS)
    )
    hidden: Path | None = setting(
        Option("A file that homing train hidden wrote.", default_text="the bundled one"), None
    )
    ssl_extractor: str = setting(
        Option("The network of SSL watermarks; list networks with: homing extractors."), "imagenet-lite0"
    )
    key: int = setting(
        Option("The key of SSL watermarks: the seed of their directions.", minimum=0, maximum=2**63 - 1), 0
    )


@dataclass(frozen=True)
class MethodResult:
    """A row and its copies (P, E): names of the files, whether each copy is found, and its number of correct bits."""

    row: Row
    sources: list[str]
    correct: np.ndarray
    correct_bits: np.ndarray | None


class WatermarksBench(CodebookBench[MethodResult]):
    """Compare activation with watermarks at the same PSNR: copies that are found, and identifiers that are read.

    Run the same command again to resume it: descriptors and released files stay in the out folder.

    Example:

        homing bench watermarks --photos held-out/ --out watermarks/
    """

    title = "Activation compared with watermarks"
    what = f"Recall of edited copies, by index search with one probe or by an identifier of {BITS} bits"
    settings_class = WatermarksSettings
    settings: WatermarksSettings

    def measure(self) -> None:
        """Measure passive and activated photos with each codebook, then each watermark."""
        # Load networks before any work: a missing one must not end the run hours later.
        wanted = self.settings.watermarks
        hidden = self._hidden() if "hidden" in wanted else None
        network = self._ssl_network() if "ssl" in wanted else None
        runs = codebook_runs(self.settings, self.progress)  # checks all inputs
        ssl = None if network is None else ssl_watermark(self.settings, network, self.progress)
        self.measure_runs(runs)
        for watermark in (ssl, hidden):
            if watermark is not None:
                self._measure_watermark(self.runs[0], watermark)

    def measure_codebook(self, run: CodebookRun) -> None:
        """Measure passive and activated photos, whose copies are found by index search with one probe."""
        supported = run.supported_recipes(list(METHODS.values()))
        for method, recipe in METHODS.items():
            if recipe in supported:
                released = run.release(recipe)
                found = run.search(run.copies(released.files, PAPER, recipe), 1, 1, recipe)
                correct = run.copy_search(released, PAPER, found, 1).correct
                self._add(method, run.codebook, released, correct, None)

    def _measure_watermark(self, run: CodebookRun, watermark: Watermark) -> None:
        """Measure a watermark, whose copies are found by decoding their identifier."""
        out, decoder = self.settings.out, watermark.decoder
        with self.progress(f"{watermark.name}: watermarking", len(run.originals)) as advance:
            released = release_modified(
                run.originals,
                out / "released" / "watermarks" / watermark.name,
                modify=partial(mark, watermark=watermark, budget=PAPER_BUDGET),
                key=f"{watermark.fingerprint} {PAPER_BUDGET}",
                advance=advance,
            )
        if not released.files:
            raise HomingError(f"no photo could be watermarked; the first error: {released.failures[0]}")
        self.failures += released.failures
        with self.progress(f"{watermark.name}: editing", len(released.files)) as advance:
            scores = describe_copies(decoder, released.files, PAPER, out, advance)
        files = {original.source: original.file for original in run.originals}
        hashes = [sha256(files[each.source].read_bytes()).hexdigest() for each in released.files]
        messages = torch.stack([identifier(each, decoder.dim) for each in hashes]).numpy()
        correct_bits = ((scores > 0) == messages[:, None]).sum(axis=2)
        self._add(watermark.name, None, released, correct_bits == decoder.dim, correct_bits)

    def _add(
        self,
        method: str,
        codebook: Codebook | None,
        released: ReleaseResult,
        correct: np.ndarray,
        correct_bits: np.ndarray | None,
    ) -> None:
        """Keep the recall by edit of the copies of the files of one method.

        With a watermark a copy is found if all bits of its identifier are decoded correctly; `bit_accuracy` is the
        share of correct bits. With an index it is found if its original is the nearest reference with one probe.
        """
        accuracy = None if correct_bits is None else (correct_bits / BITS).mean(axis=0).tolist()
        columns = released.columns()
        row = {
            "method": method,
            "codebook": codebook and codebook.name,
            "index": codebook and codebook.spec,
            **recall_columns(LABELS, correct),
            "bit_accuracy": accuracy and dict(zip(LABELS, accuracy, strict=True)),
            "photos": columns["photos"],
            "modified": columns["activated"],
            **{name: columns[name] for name in ("psnr", "ssim", "seconds_per_photo")},
        }
        self.rows.append(row)
        self.measured.append(MethodResult(row, [file.source for file in released.files], correct, correct_bits))

    def _hidden(self) -> HiddenWatermark:
        watermark = HiddenWatermark.load(self.settings.hidden)
        if watermark.decoder.dim != BITS:
            raise HomingError(
                f"{self.settings.hidden} hides {watermark.decoder.dim} bits; train one with --bits {BITS}"
            )
        return watermark

    def _ssl_network(self) -> Extractor:
        network = extractors.load(self.settings.ssl_extractor)
        if network.dim < BITS:
            raise HomingError(
                f"{BITS} bits need as many dimensions, '{network.name}' has {network.dim}; choose another"
            )
        if network.name not in codebooks.available() and self.settings.distractor_photos is None:
            raise HomingError(
                f"'{network.name}' has no bundled distractors to whiten SSL watermarks on; give photos with "
                "--distractor-photos"
            )
        return network

    def facts(self) -> Mapping[str, object]:
        """Edits, watermarks, bits, budget and key."""
        settings = self.settings
        about = {"edits": LABELS, "watermarks": settings.watermarks, "bits": BITS, "budget": str(PAPER_BUDGET)}
        return {**about, "key": settings.key}

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """A row for each edit."""
        names = [_name(row) if row["codebook"] is None else f"{row['method']},\n{row['codebook']}" for row in self.rows]
        columns = {
            **by_label("recall", LABELS, 2),
            "mean": number("mean", 3),
            "bit accuracy": _accuracy,
            "PSNR, dB": number("psnr", 1),
        }
        return ["edit", *names], transposed(self.rows, columns)

    def tables(self) -> list[Table]:
        """The paper's last table, further figures, and the share of correct bits."""
        bits = [row for row in self.rows if row["bit_accuracy"] is not None]
        accuracy = Table.of(
            "bits",
            f"The share of correct bits of {BITS}, by edit; 0.5 is expected at random.",
            {"method": _name, **by_label("bit_accuracy", LABELS, 3), "mean": _accuracy},
            bits,
        )
        return [self._table(), self._details(), *([accuracy] if bits else [])]

    def _table(self) -> Table:
        """The paper's last table: measured rows, then published ones."""
        columns: Columns = {
            "method": _name,
            "index": _index,
            **by_label("recall", LABELS, 2),
            "mean": number("mean", 3),
        }
        methods = {recipe: method for method, recipe in METHODS.items()}
        theirs = [
            {"method": methods[row["recipe"]], "index": f"{PAPER_INDEX} (published)", **published_recall(row)}
            for row in published()["table"]
            if (row["index"], row["probes"]) == (PAPER_INDEX, 1) and row["recipe"] in methods
        ]
        theirs += [
            {"method": WATERMARKS[row["name"]], "index": "(published)", **published_recall(row)}
            for row in published()["watermarks"]
        ]
        return Table.of(
            "table",
            "Recall by edit. With an index, the original is the nearest reference with one probe; with a watermark, "
            f"all {BITS} bits of the identifier are decoded correctly. Published rows are of SSCD and DINO among a "
            "million references (Fernandez et al., 2023).",
            columns,
            self.rows,
            published=theirs,
        )

    def _details(self) -> Table:
        columns: Columns = {
            "method": _name,
            "index": _index,
            "mean, 95 % interval": lambda row: with_interval(row["mean"], row["mean_interval"]),
            "bit accuracy": _accuracy,
            "PSNR, dB": number("psnr", 1),
            "SSIM": number("ssim", 3),
            "modified": lambda row: f"{row['modified']} of {row['photos']}" if row["modified"] else "",
            "s per photo": lambda row: fixed(row["seconds_per_photo"], 2) if row["modified"] else "",
        }
        return Table.of(
            "details",
            "The mean over the edits with its interval, the share of correct bits, and quality of the files as "
            "written: all methods have the same budget and the same PSNR.",
            columns,
            self.rows,
        )

    def figures(self) -> list[Figure]:
        """Recall by edit with intervals, with the first codebook."""
        first = self.rows[0]["codebook"]
        shares = {_name(row): recall_shares(row) for row in self.rows if row["codebook"] in (first, None)}
        caption = f"Recall by edit with 95 % intervals, {first}, one probe."
        return [share_bars("recall", caption, LABELS, shares, "recall")]

    def csv(self) -> CsvTable:
        """A row for each copy."""
        return CsvTable(
            name="copies",
            content="every copy",
            headings=["method", "codebook", "photo", "edit", "is_correct", "correct_bits"],
            rows=self._lines(),
        )

    def _lines(self) -> Iterator[list[object]]:
        for each in self.measured:
            for photo, source in enumerate(each.sources):
                for i, label in enumerate(LABELS):
                    correct_bits = "" if each.correct_bits is None else int(each.correct_bits[photo, i])
                    head = [each.row["method"], each.row["codebook"] or "", source, label]
                    yield [*head, int(each.correct[photo, i]), correct_bits]


def ssl_watermark(settings: WatermarksSettings, network: Extractor, progress: Progress) -> SSLWatermark:
    """The SSL watermark, whitened on the distractors bundled with the network, or else on those of the bench."""
    given = settings.distractor_photos
    if network.name in codebooks.available():
        book = codebooks.load(network.name)
        rows = book.decode(codebooks.bundled_distractors(book).codes[:MAX_WHITENING_ROWS]).numpy()
    else:
        assert given is not None, "checked with the network"
        what, count = f"{network.name}: describing the distractors", MAX_WHITENING_ROWS
        rows = load_descriptor_set(given, network, count, settings.out, progress, what, crops=False).descriptors
    return SSLWatermark(SSLDecoder(network, rows, bits=BITS, key=settings.key))


def _name(row: Row) -> str:
    return WATERMARKS.get(row["method"]) or str(row["method"])


def _index(row: Row) -> str:
    """Codebook and spec: several codebooks may have the same spec."""
    return ", ".join(dict.fromkeys(each for each in (row["codebook"], row["index"]) if each))


def _accuracy(row: Row) -> str:
    return "" if row["bit_accuracy"] is None else f"{fmean(row['bit_accuracy'].values()):.3f}"

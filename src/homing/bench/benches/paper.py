"""The paper bench: all of the paper's measurements in its own setup, on DISC21.

The codebook is trained on `train/`, all of `references/` is indexed, and the 10,000 references that the ground truth
names are released, edited and searched for. The paper's negative queries are edited from the originals of DISC21's
40,000 distractor queries, which are not part of the download: its dev queries are already edited. Negatives are photos
of `train/` instead, as in the authors' published code: of the same kind as the references, but not among them. The
codebook is not trained on them; SSCD, which was trained on `train/`, was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from homing import extractors
from homing._io.files import report_write_errors
from homing._options import Option, setting
from homing.bench.base import DEFAULT_CODEBOOK, PASSIVE, PROBES_OPTION, RECIPES_OPTION, Bench, Settings
from homing.bench.benches._disc21 import link_photos, photo_folders, read_disc21
from homing.bench.benches.analysis import AnalysisBench, AnalysisSettings
from homing.bench.benches.detection import DetectionBench, DetectionSettings
from homing.bench.benches.edits import EditsBench, EditsSettings
from homing.bench.benches.quality import QualityBench, QualitySettings
from homing.bench.benches.retrieval import RetrievalBench, RetrievalSettings
from homing.bench.codebook_bench import trained_codebook
from homing.bench.data import DescriptorSet, compute_descriptor_set, refuse_inside
from homing.bench.figures import Figure
from homing.bench.references import Probes
from homing.bench.scores import PAPER_INDEX, published
from homing.bench.tables import Columns, Table, group_starts
from homing.codebooks.faiss_training import build_quantizer
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.perception import BUDGETS
from homing.photo import LocalPhoto

Comparison = tuple[str, str, Probes | None, str, str]
"""What was measured, the recipe, probes if anything was searched for, the measured figure and the published one."""


@dataclass(frozen=True, kw_only=True)
class PaperSettings(Settings):
    """The folder of DISC21, the network, the index and the numbers of photos; defaults are the paper's."""

    disc21: Path = setting(Option("The folder of DISC21: references/, train/, ground truth.", argument="DISC21_DIR"))
    extractor: str = setting(
        Option("The network; the paper's is sscd_disc_mixup. List networks with: homing extractors."), DEFAULT_CODEBOOK
    )
    spec: str = setting(Option("The index as a FAISS factory string; it is trained on train/."), PAPER_INDEX)
    descriptors: int | None = setting(
        Option(
            "How many descriptors to train on: whole photos of train/, then crops.",
            default_text="one per photo",
            minimum=1,
        ),
        None,
    )
    limit_train: int | None = setting(
        Option("Train on only the first photos of train/.", default_text="all but negatives", minimum=1), None
    )
    limit_references: int | None = setting(
        Option("Index only this many of the references that are not searched for.", default_text="all", minimum=1), None
    )
    positives: int = setting(Option("How many references of the ground truth to search for.", minimum=1), 10_000)
    negatives: int = setting(Option("How many photos at the end of train/ are negative queries.", minimum=1), 40_000)
    probes: Sequence[Probes] = setting(PROBES_OPTION, (1, 16, "exact"))
    recipes: Sequence[str] = setting(RECIPES_OPTION, (PASSIVE, "paper"))
    parts: Sequence[str] = setting(
        Option("Comma-separated benches to run.", read=str, choices=lambda: PARTS, kind="part"),
        ("retrieval", "detection", "quality", "edits", "analysis"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.recipes) - {PASSIVE}:
            raise HomingError(f"activated photos are compared with passive ones; give a recipe besides '{PASSIVE}'")

    @property
    def cache_dir(self) -> Path:
        """The folder of cached results, shared by all parts and later runs."""
        return self.out / "cache"


class PaperBench(Bench):
    """Repeat the measurements of the paper on DISC21, beside the published figures.

    Each part is a bench with its own report in a folder of its name. Run the same command again to resume it.

    Example:

        homing bench paper DISC21/ --extractor sscd_disc_mixup --out paper/
    """

    title = "Active Image Indexing on DISC21"
    settings_class = PaperSettings
    settings: PaperSettings

    def measure(self) -> None:
        """Run each part and write its results into a separate folder.

        Descriptors, codebook and released files are cached for all parts, and for the next run.
        """
        settings, cache = self.settings, self.settings.cache_dir
        disc = read_disc21(
            settings.disc21,
            positives=settings.positives,
            negatives=settings.negatives,
            limit_references=settings.limit_references,
            limit_train=settings.limit_train,
        )
        for folder in photo_folders(settings.disc21):
            refuse_inside(settings.out, folder)
        network = extractors.load(settings.extractor)
        count = settings.descriptors or len(disc.train_photos)
        # Refuses a spec that cannot be trained, before any other work.
        build_quantizer(settings.spec, dim=network.dim, descriptors=count)
        with report_write_errors(cache):
            cache.mkdir(parents=True, exist_ok=True)
        train = self._describe(network, disc.train_photos, count, "training photos")
        book, _ = trained_codebook(settings.spec, _descriptor_file(train), network, cache, self.progress)
        book_file = settings.out / f"{settings.spec}.codebook"
        book.write(book_file)
        others = self._describe(network, disc.others, len(disc.others), "references")
        self.failures += [*train.failures, *others.failures]
        self.counts = {
            "photos": len(disc.photos),
            "references": len(disc.photos) + len(others.descriptors),
            "train_photos": train.photos,
            "descriptors": len(train.descriptors),
            "negatives": len(disc.negatives),
        }
        shared = {
            "photos": link_photos(disc.photos, cache / "photos"),
            "distractor_photos": _descriptor_file(others),
            "distractors": len(others.descriptors),
            "codebooks": [str(book_file)],
            "out": cache,
        }
        negatives = link_photos(disc.negatives, cache / "negatives")
        self.part_figures: dict[str, Figure] = {}  # the first figure of each part
        for part in settings.parts:
            self._measure_part(part, shared, negatives)

    def _describe(self, network: Extractor, photos: Sequence[LocalPhoto], count: int, what: str) -> DescriptorSet:
        with self.progress(f"describing the {what}", min(count, len(photos))) as advance:
            return compute_descriptor_set(network, photos, count, self.settings.cache_dir, advance)

    def _measure_part(self, part: str, shared: Mapping[str, Any], negatives: Path) -> None:
        """Run another bench in the paper's setup, and compare its figures with the published ones."""
        probes, recipes = self.settings.probes, self.settings.recipes
        activated = [recipe for recipe in recipes if recipe != PASSIVE]
        settings: dict[str, Callable[[], Settings]] = {
            "retrieval": lambda: RetrievalSettings(**shared, probes=probes, recipes=recipes),
            "detection": lambda: DetectionSettings(**shared, negatives=negatives, probes=probes, recipes=recipes),
            "quality": lambda: QualitySettings(**shared, recipes=activated, budgets=tuple(BUDGETS)),
            "edits": lambda: EditsSettings(**shared, recipes=recipes),
            "analysis": lambda: AnalysisSettings(**shared, recipes=recipes),
        }
        bench_class, compare = PARTS[part]
        bench = bench_class(settings[part](), self.progress, self.command)
        results = bench.run()
        results.write(self.settings.out / part)
        headings = ("metric", "recipe", "probes", "ours", "published")
        self.rows.extend({"part": part, **dict(zip(headings, row, strict=True))} for row in compare(bench))
        self.part_figures[part] = results.figures[0]
        self.failures += bench.failures

    def summary(self) -> str:
        """What was measured, in one line."""
        counts, settings = self.counts, self.settings
        return (
            f"{counts['photos']:,} photos among {counts['references']:,} references of DISC21; {settings.spec} of "
            f"{settings.extractor}, trained on {counts['train_photos']:,} photos of train/; {counts['negatives']:,} "
            "negatives."
        )

    def about(self) -> Mapping[str, object]:
        """The settings as results.json and the page show them."""
        settings = self.settings
        return {
            "disc21": str(settings.disc21),
            "extractor": settings.extractor,
            "spec": settings.spec,
            **self.counts,
            "negatives": f"{self.counts['negatives']}, the last of train/, on which the codebook was not trained; the "
            "paper uses originals of DISC21's distractor queries, which are not part of the download",
            "recipes": settings.recipes,
            "probes": settings.probes,
        }

    def numbers(self) -> Mapping[str, object]:
        """The pages of the parts."""
        return {"parts": {part: _page(part) for part in self.settings.parts}}

    def tables(self) -> list[Table]:
        """Every figure next to the published one, with links to the parts."""
        columns: Columns = {
            "part": lambda row: _Link(row["part"], _page(row["part"])),
            **{name: name for name in ("metric", "recipe")},
            "probes": lambda row: str(row["probes"] or ""),
            **{name: name for name in ("ours", "published")},
        }
        return [
            Table.of(
                "summary",
                "Measured figures and, where the paper reports one, the published figure (Fernandez et al., 2023: "
                "SSCD, 10,000 photos among a million references).",
                columns,
                self.rows,
                groups=group_starts([row["part"] for row in self.rows]),
            )
        ]

    def figures(self) -> list[Figure]:
        """The first figure of each part."""
        return [replace(figure, name=f"{part}-{figure.name}") for part, figure in self.part_figures.items()]


class _Link(str):
    """Text that is a link in HTML and plain text elsewhere."""

    address: str

    def __new__(cls, text: str, address: str) -> _Link:
        link = super().__new__(cls, text)
        link.address = address
        return link

    def __html__(self) -> str:
        return f'<a href="{escape(self.address)}">{escape(str(self))}</a>'


def _page(part: str) -> str:
    """The path of the report of a part, relative to the out folder."""
    return f"{part}/report.html"


def _descriptor_file(descriptor_set: DescriptorSet) -> Path:
    """The file of these descriptors."""
    assert isinstance(descriptor_set.descriptors, np.memmap)
    return Path(str(descriptor_set.descriptors.filename))


def _compare_retrieval(bench: RetrievalBench) -> Iterator[Comparison]:
    for row in bench.rows:
        key = "Flat" if row["probes"] == "exact" else row["spec"], row["probes"], row["recipe"]
        same = (each for each in published()["table"] if (each["index"], each["probes"], each["recipe"]) == key)
        theirs = next((f"{each['mean']:.2f}" for each in same), "")
        yield "recall at rank 1, mean of the edits", row["recipe"], row["probes"], f"{row['mean']:.3f}", theirs


def _compare_detection(bench: DetectionBench) -> Iterator[Comparison]:
    passive = {row["probes"]: row["average_precision"] for row in bench.rows if row["recipe"] == PASSIVE}
    for row in bench.rows:
        recipe, probes, precision = row["recipe"], row["probes"], row["average_precision"]
        key = row["spec"], recipe, probes
        same = (each for each in published()["indexes"] if (each["index"], each["recipe"], 1) == key)
        theirs = next((f"{each['average_precision']:.2f}" for each in same), "")
        yield "µAP of the random edit", recipe, probes, f"{precision:.3f}", theirs
        if recipe != PASSIVE and passive.get(probes):
            gain = published()["average_precision_gain"][0]["gain"]
            theirs = f"× {gain:g}" if key == (PAPER_INDEX, "paper", 1) else ""
            yield "µAP divided by that of passive", recipe, probes, f"× {precision / passive[probes]:.2f}", theirs


def _compare_quality(bench: QualityBench) -> Iterator[Comparison]:
    for row in bench.rows:
        for name, what, digits in (("psnr", "PSNR, dB", 1), ("ssim", "SSIM", 3), ("linf", "L∞, of 255", 1)):
            if row[name] is not None and row["own_budget"]:
                theirs = f"{published()['quality'][name]:g}" if row["recipe"] == "paper" else ""
                yield what, row["recipe"], None, f"{row[name]:.{digits}f}", theirs


def _compare_edits(bench: EditsBench) -> Iterator[Comparison]:
    """Compare nothing: the paper shows curves only."""
    for recipe in dict.fromkeys(row["recipe"] for row in bench.rows):
        shares = [row["recall"] for row in bench.rows if row["recipe"] == recipe]
        yield "recall at rank 1, mean of all strengths of all edits", recipe, 1, f"{fmean(shares):.3f}", ""


def _compare_analysis(bench: AnalysisBench) -> Iterator[Comparison]:
    known = published()["failure"]
    for row in bench.rows:
        recipe = row["recipe"]
        yield "‖x − q(x_o)‖², released files", recipe, None, f"{row['released'].mean:.3f}", ""
        if row["failure"] is not None:
            theirs = f"{known[recipe]:.2f}" if row["spec"] == PAPER_INDEX and recipe in known else ""
            yield "p_f of the random edit", recipe, 1, f"{row['failure']['random']:.3f}", theirs
    for check in bench.compatibilities:
        same = "yes" if check["equal"] else "no"
        yield "results for other photos unchanged", check["recipe"], 1, same, "yes"


# The parts: each is another bench in the paper's setup, compared with the published figures.
PARTS: dict[str, tuple[type[Bench], Callable[[Any], Iterator[Comparison]]]] = {
    "retrieval": (RetrievalBench, _compare_retrieval),
    "detection": (DetectionBench, _compare_detection),
    "quality": (QualityBench, _compare_quality),
    "edits": (EditsBench, _compare_edits),
    "analysis": (AnalysisBench, _compare_analysis),
}

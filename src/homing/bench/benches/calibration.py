"""The calibration bench: how often false matches occur, compared with their stated probability."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from homing import codebooks, extractors
from homing._io.files import prepare_output_folder
from homing._io.parallel import process_map
from homing._options import Option, setting
from homing.bench.base import CODEBOOK_HELP, DEFAULT_CODEBOOK, Bench, Progress, Settings
from homing.bench.data import DescriptorSet, load_descriptor_set, refuse_inside
from homing.bench.figures import Figure, colors
from homing.bench.tables import Row, Table
from homing.codebooks import Codebook
from homing.codebooks.null_distribution import NO_PAIRS, ComparedBy, nearest_pairs, pairwise_distances
from homing.errors import HomingError
from homing.imaging import align, to_image
from homing.photo import Photo, find_photos

if TYPE_CHECKING:
    import matplotlib.figure

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)  # numbers of references in a collection
STATED_PROBABILITIES = (1e-1, 1e-2, 1e-3, 1e-4)
MIN_EXPECTED = 10  # expected false matches below which a share is too uncertain to report
MAX_PAIRS = 300  # nearest pairs to align: farther ones rarely show the same scene, and each alignment takes seconds
_SIDE = 256  # pixels: photos are aligned at this size
_QUERIES_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings(Settings):
    """Unrelated photos, or their descriptors: each half is searched for in the other."""

    distractor_photos: Path = setting(
        Option("Unrelated photos to search for in each other: a folder, or a .npy file of descriptors.")
    )
    distractors: int = setting(
        Option("How many of these photos. One half is searched for in the other, and the other way round.", minimum=2),
        20_000,
    )
    codebooks: Sequence[str] = setting(
        Option(f"{CODEBOOK_HELP} Repeatable.", name="--codebook", default_text=DEFAULT_CODEBOOK), ()
    )
    exclude_related: bool = setting(
        Option("Align the 300 nearest pairs, and leave out those that show one scene."), False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exclude_related and self.distractor_photos.is_file():
            raise HomingError("related photos cannot be found from descriptors alone; give a folder of photos")


class CalibrationBench(Bench):
    """Measure whether unrelated photos match as often as false-match probabilities say.

    The photos must be unrelated to each other and to those of the codebook's null distribution. --exclude-related
    leaves out pairs that are related after all; it needs the extra `demo`.

    Example:

        homing bench calibration --distractor-photos others/ --distractors 20000 --out calibration/
    """

    title = "Calibration of false-match probabilities"
    settings_class = CalibrationSettings
    settings: CalibrationSettings

    def measure(self) -> None:
        """Search with each codebook."""
        self.books = [codebooks.load(name) for name in self.settings.codebooks or (DEFAULT_CODEBOOK,)]
        refuse_inside(self.settings.out, self.settings.distractor_photos)
        prepare_output_folder(self.settings.out)
        for book in self.books:
            distractors = self._distractors(book)
            related = self._related(distractors) if self.settings.exclude_related else NO_PAIRS
            self.rows.extend(false_match_rows(book, distractors, related, self.progress))
            self.photos, self.related = len(distractors.descriptors), len(related)
            self.failures += distractors.failures

    def _distractors(self, book: Codebook) -> DescriptorSet:
        network, settings = extractors.load(book.extractor), self.settings
        book.check(network)
        given, count, what = (
            settings.distractor_photos,
            settings.distractors,
            f"{book.name}: describing the distractors",
        )
        # Crops of one photo are related.
        return load_descriptor_set(given, network, count, settings.out, self.progress, what, crops=False)

    def _related(self, distractors: DescriptorSet) -> np.ndarray:
        if distractors.failures:
            raise HomingError(
                f"--exclude-related needs photos that can all be read; one cannot: {distractors.failures[0]}"
            )
        found = find_photos([self.settings.distractor_photos])[: self.settings.distractors]
        with self.progress("looking for pairs of the same scene", MAX_PAIRS) as advance:
            return related_pairs([photo.path for photo in found], distractors.descriptors, advance)

    def summary(self) -> str:
        """What was measured, in one line."""
        excluded = f", without {self.related} pairs of the same scene" if self.settings.exclude_related else ""
        return f"{self.photos:,} unrelated photos: each half searched for in collections of the other{excluded}."

    def about(self) -> Mapping[str, object]:
        """The settings as results.json and the page show them."""
        return {
            "distractors": self.photos,
            "stated": STATED_PROBABILITIES,
            "min_expected": MIN_EXPECTED,
            "related_pairs_excluded": self.related,
        }

    def numbers(self) -> Mapping[str, object]:
        """The codebooks."""
        return {"codebooks": {book.name: {"fingerprint": book.fingerprint} for book in self.books}}

    def tables(self) -> list[Table]:
        """The observed rate of false matches, relative to the stated probability, by size of the collection."""
        rows = []
        for (codebook, compared, size), group in groupby(self.rows, itemgetter("codebook", "compared", "references")):
            searches = list(group)
            shares = [f"{row['observed'] / row['stated']:.2f}" if row["enough_searches"] else "–" for row in searches]
            rows.append([codebook, compared, f"{size:,}", *shares, f"{searches[0]['searches']:,}"])
        stated = [f"{probability:g}" for probability in STATED_PROBABILITIES]
        return [
            Table(
                name="table",
                caption="Observed rate of false matches, divided by the stated false-match probability in the heading: "
                "1 is exact, above 1 false matches are more frequent than stated. A dash if fewer than "
                f"{MIN_EXPECTED} false matches are expected.",
                headings=["codebook", "compared", "references", *stated, "searches"],
                rows=rows,
            )
        ]

    def figures(self) -> list[Figure]:
        """Observed against stated probabilities."""
        meaningful = [row for row in self.rows if row["enough_searches"] and row["found"]]
        names = list(dict.fromkeys(map(_series_name, self.rows)))
        stated = np.array(STATED_PROBABILITIES)

        def draw(canvas: matplotlib.figure.Figure) -> None:
            axes = canvas.subplots()
            axes.fill_between(stated, stated / 2, stated * 2, color="#8883", lw=0)
            axes.plot(stated, stated, color="#888", lw=0.8)
            for name, color in colors(names).items():
                for size in dict.fromkeys(row["references"] for row in meaningful):
                    points = [row for row in meaningful if _series_name(row) == name and row["references"] == size]
                    observed = [row["observed"] for row in points]
                    axes.plot([row["stated"] for row in points], observed, "o-", color=color, ms=3)
                axes.plot([], [], "o-", color=color, label=name)
            axes.set(xscale="log", yscale="log")
            axes.set(xlabel="stated false-match probability", ylabel="observed share of searches")
            axes.legend()

        caption = "Observed rate of false matches against the stated false-match probability; a line for each size of "
        caption += "the collection. Gray: within a factor of 2."
        return [Figure(name="calibration", caption=caption, draw=draw)]


def false_match_rows(
    book: Codebook, distractors: DescriptorSet, related: np.ndarray, progress: Progress
) -> Iterator[Row]:
    """Search for each half of the distractors in collections of the other; related pairs (R, 2) are excluded.

    Rows have the number of searches in collections of one size, and of those with a match of at most a stated
    probability.
    """
    rows = np.asarray(distractors.descriptors, dtype=np.float32)
    halves = np.array_split(np.random.default_rng(0).permutation(len(rows)), 2)
    sizes = [size for size in SIZES if size <= len(halves[1])]
    both_orders = np.concatenate([related, related[:, ::-1]])
    kinds: list[ComparedBy] = ["code", "descriptor"]
    for compared in kinds:
        found = np.zeros((len(sizes), len(STATED_PROBABILITIES)), dtype=int)
        searches = [sum(len(one) * (len(other) // size) for one, other in (halves, halves[::-1])) for size in sizes]
        with progress(f"{book.name}: searching, by {compared}", len(rows)) as advance:
            for queries, references in (halves, halves[::-1]):
                found += _false_matches(book, rows, compared, queries, references, sizes, both_orders, advance)
        for size, count, matches in zip(sizes, searches, found.tolist(), strict=True):
            for stated, match_count in zip(STATED_PROBABILITIES, matches, strict=True):
                yield {
                    "codebook": book.name,
                    "compared": compared,
                    "references": size,
                    "stated": stated,
                    "searches": count,
                    "found": match_count,
                    "observed": match_count / count,
                    "enough_searches": stated * count >= MIN_EXPECTED,
                }


def _false_matches(
    book: Codebook,
    rows: np.ndarray,
    compared: ComparedBy,
    query_rows: np.ndarray,
    reference_rows: np.ndarray,
    sizes: Sequence[int],
    related: np.ndarray,
    advance: Callable[[], None],
) -> np.ndarray:
    """The number of searches with a match, by size of the collection and stated probability."""
    found = np.zeros((len(sizes), len(STATED_PROBABILITIES)), dtype=int)
    queries, points, null = rows[query_rows], rows[reference_rows], book.null_distribution
    ratios = [np.array([[null.density_ratio(chunk)] for chunk in _in_collections(points, size)]) for size in sizes]
    if compared == "code":
        queries, points = book.quantizer.comparison_points(queries, points)
    for start in range(0, len(query_rows), _QUERIES_AT_ONCE):
        chunk = query_rows[start : start + _QUERIES_AT_ONCE]
        distances = pairwise_distances(queries[start : start + _QUERIES_AT_ONCE], points)
        distances[_table_positions(related, chunk, reference_rows, len(rows))] = np.inf
        for i, (size, ratio) in enumerate(zip(sizes, ratios, strict=True)):
            nearest = _in_collections(distances.T, size).min(axis=1)
            probabilities = null.false_match_probability(compared, nearest, size, ratio)
            found[i] += [(probabilities <= stated).sum() for stated in STATED_PROBABILITIES]
        for _ in chunk:
            advance()
    return found


def _in_collections(references: np.ndarray, size: int) -> np.ndarray:
    """The references (N, …) split into collections of this size: (C, size, …)."""
    whole = len(references) // size
    return references[: whole * size].reshape(whole, size, *references.shape[1:])


def _table_positions(
    pairs: np.ndarray, queries: np.ndarray, references: np.ndarray, photos: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of pairs of photos in the matrix of these queries and references."""
    rows, columns = np.full(photos, -1), np.full(photos, -1)
    rows[queries], columns[references] = np.arange(len(queries)), np.arange(len(references))
    row, column = rows[pairs[:, 0]], columns[pairs[:, 1]]
    inside = (row >= 0) & (column >= 0)
    return row[inside], column[inside]


def related_pairs(photos: Sequence[Path], descriptors: np.ndarray, advance: Callable[[], None]) -> np.ndarray:
    """The pairs (R, 2) of photos that can be aligned, among the nearest pairs by their (P, D) descriptors.

    `advance` is called for each checked pair.
    """
    pairs = nearest_pairs(np.asarray(descriptors, dtype=np.float32), MAX_PAIRS)
    path_pairs = [(photos[one], photos[other]) for one, other in pairs]
    related = np.zeros(len(pairs), dtype=bool)
    for i, same_scene in enumerate(process_map(_show_same_scene, path_pairs, modules=[__name__])):
        related[i] = same_scene
        advance()
    return pairs[related]


def _show_same_scene(pair: tuple[Path, Path]) -> bool:
    one, other = map(_small, pair)
    return align(one, other) is not None


def _small(path: Path) -> Image.Image:
    image = to_image(Photo.load(path).pixels())
    image.thumbnail((_SIDE, _SIDE))
    return image


def _series_name(row: Row) -> str:
    return f"{row['codebook']}, by {row['compared']}"

"""The speed bench: the plain loop and homing on the same photos in the same run, with the recall of both."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from PIL import Image

from homing import codebooks, extractors
from homing._io.files import prepare_output_folder
from homing._options import Option, setting
from homing.activation import RECIPES, resolve_recipe
from homing.activation.pipeline import CPU_BATCH_SIZE, GPU_BATCH_SIZE, batch_size_for
from homing.bench.base import CODEBOOK_HELP, DEFAULT_CODEBOOK, Bench, Settings
from homing.bench.benches._speed_files import STAGES, time_files
from homing.bench.benches._speed_loop import PLAIN, LoopConfig, measure_memory, time_loops
from homing.bench.data import refuse_inside
from homing.bench.demo import demo_photos
from homing.bench.figures import PALETTE, Figure
from homing.bench.tables import Column, Row, Table, cells, group_starts, number
from homing.errors import HomingError, PhotoError
from homing.objectives import has_objective
from homing.photo import Photo, find_photos

if TYPE_CHECKING:
    import matplotlib.figure

PLAIN_RECIPE = "paper"  # the recipe of the plain loop, always measured with homing too
_QUALITY = 90  # JPEG quality of the demo's photos, typical of cameras and agencies
_MEMORY = "peak above that of network and photos, on the GPU or of a process that runs this loop alone"


@dataclass(frozen=True, kw_only=True)
class SpeedSettings(Settings):
    """The photos, the recipes, and the batch sizes; by default the demo's photos as JPEG files."""

    out: Path = setting(Option("The folder for results."), Path("speed"))
    photos: Path | None = setting(
        Option("The photos to activate.", default_text="those of the demo, as JPEG files"), None
    )
    codebook: str = setting(Option(CODEBOOK_HELP), DEFAULT_CODEBOOK)
    recipes: Sequence[str] = setting(
        Option("Comma-separated recipes; paper is always measured.", read=str, choices=lambda: RECIPES, kind="recipe"),
        ("paper", "homing-fast", "homing"),
    )
    batches: Sequence[int] | None = setting(
        Option(
            "Comma-separated batch sizes of the loop.",
            default_text=f"{CPU_BATCH_SIZE.photos}, on a GPU {GPU_BATCH_SIZE.photos}",
            read=int,
            takes="whole numbers",
            minimum=1,
        ),
        None,
    )
    rounds: int = setting(Option("How often each is timed, after a warm-up round.", minimum=1), 3)
    limit: int | None = setting(Option("Use only the first photos.", default_text="all", minimum=1), None)

    @property
    def loop_configs(self) -> list[LoopConfig]:
        """The plain loop, then homing with each recipe."""
        return [PLAIN, *(LoopConfig(resolve_recipe(name)) for name in dict.fromkeys([PLAIN_RECIPE, *self.recipes]))]


class SpeedBench(Bench):
    """Measure the time and memory of activation: the plain loop of the paper and homing, with the recall of both.

    Both process the same photos in one run: first the loop alone, then from file to file, with the time per stage.

    Example:

        homing bench speed --photos held-out/ --limit 32 --recipes paper,homing --out speed/
    """

    title = "Speed: the plain loop and homing"
    resumable = False
    settings_class = SpeedSettings
    settings: SpeedSettings

    def measure(self) -> None:
        """Measure loops, memory, files and recall, on temporary copies of the photos and in temporary collections."""
        settings, configs = self.settings, self.settings.loop_configs
        codebook = codebooks.load(settings.codebook)
        if not has_objective(codebook):
            raise HomingError(f"photos cannot be activated for spec '{codebook.spec}'; choose another --codebook")
        extractor = extractors.load(codebook.extractor)
        codebook.check(extractor)
        if settings.photos is not None:
            refuse_inside(settings.out, settings.photos)
        prepare_output_folder(settings.out)
        batches = settings.batches or (batch_size_for(extractor.device).photos,)
        with tempfile.TemporaryDirectory(dir=settings.out, prefix=".speed-") as temporary:
            folder = Path(temporary)
            source = demo_jpegs(folder / "demo") if settings.photos is None else settings.photos
            pixels, self.failures = copy_photos(source, settings.limit, folder / "photos")
            photos = sorted((folder / "photos").iterdir())
            images = [Photo.load(photo).pixels() for photo in photos[: max(batches)]]
            with self.progress("The loop", (1 + settings.rounds) * len(configs) * len(batches)) as advance:
                self.loop = time_loops(
                    configs,
                    images,
                    batches=batches,
                    rounds=settings.rounds,
                    extractor=extractor,
                    codebook=codebook,
                    advance=advance,
                )
            if extractor.device.type == "cpu" and sys.platform == "linux":  # peak memory is not available elsewhere
                with self.progress("Memory of the loop", len(self.loop)) as advance:
                    measure_memory(self.loop, configs, photos, codebook=settings.codebook, advance=advance)
            self.files = time_files(
                configs,
                folder / "photos",
                folder,
                rounds=settings.rounds,
                extractor=extractor,
                codebook=codebook,
                progress=self.progress,
            )
        self.failures += self.files.failures
        self.photos: dict[str, object] = {  # what is reported of them
            "photos": len(photos),
            "megapixels": round(sum(pixels) / len(pixels) / 1e6, 3),
            "codebook": codebook.name,
            "extractor": codebook.extractor,
            "device": torch.cuda.get_device_name() if extractor.device.type == "cuda" else "CPU",
        }

    def summary(self) -> str:
        """What was measured, in one line."""
        among = (
            f"recall with one probe among {self.files.distractors:,} distractors, mean of 14 edits"
            if self.files.distractors
            else f"no recall: codebook '{self.photos['codebook']}' has no bundled distractors"
        )
        return (
            f"{self.photos['photos']:,} photos of {self.photos['megapixels']:.2f} megapixels, "
            f"{self.photos['extractor']}, {self.photos['device']}; medians of {self.settings.rounds} rounds after a "
            f"first one that is not counted; {among}."
        )

    def about(self) -> Mapping[str, object]:
        """The settings as results.json and the page show them."""
        return {
            **self.photos,
            "recipes": [str(config.recipe) for config in self.settings.loop_configs],
            "batches": list(dict.fromkeys(row["batch"] for row in self.loop)),
            "rounds": self.settings.rounds,
            "distractors": self.files.distractors,
        }

    def numbers(self) -> Mapping[str, object]:
        """The plain loop and homing with the same recipe, each at its fastest batch size; files; recall; memory."""
        ours, plain = self._fastest(PLAIN_RECIPE), self._fastest(PLAIN.name)
        return {
            "loop": {
                "plain_ms": plain["ms"],
                "homing_ms": ours["ms"],
                "ratio": plain["ms"] / ours["ms"],
                "recipe": PLAIN_RECIPE,
                "plain_batch": plain["batch"],
                "homing_batch": ours["batch"],
                "rows": self.loop,
            },
            "files": self._files(),
            "recall": self.files.recall,
            "memory": {"plain_mb": plain["memory_mb"], "homing_mb": ours["memory_mb"], "how": _MEMORY},
        }

    def _files(self) -> dict[str, object]:
        """The plain loop, and the fastest recipe with at least the same recall; None if recall was not measured."""
        plain, *others = self.files.rows
        recall = self.files.recall
        needed = recall[plain["name"]]
        qualified = [row for row in others if needed is not None and (recall[row["name"]] or 0) >= needed]
        fastest = min(qualified, key=lambda row: float(row["ms"]), default=None)
        return {
            "plain_ms": plain["ms"],
            "homing_ms": fastest["ms"] if fastest else None,
            "ratio": plain["ms"] / fastest["ms"] if fastest else None,
            "recipe": fastest["name"] if fastest else None,
            "rows": self.files.rows,
        }

    def _fastest(self, name: str) -> Row:
        return min((row for row in self.loop if row["name"] == name), key=lambda row: float(row["ms"]))

    def _columns(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """The columns of the loop alone, and of files, without names."""
        plain_loop = {row["batch"]: row["ms"] for row in self.loop if row["name"] == PLAIN.name}
        plain_files = self.files.rows[0]["ms"]
        loop: dict[str, Column] = {
            "batch": "batch",
            "ms per photo": number("ms", 2),
            "plain ÷ it": lambda row: f"{plain_loop[row['batch']] / row['ms']:.2f}",
            "memory, MB": lambda row: "–" if row["memory_mb"] is None else f"{row['memory_mb']:,.0f}",
        }
        files: dict[str, Column] = {
            "ms per photo": number("ms", 1),
            "photos/s": number("photos_per_second", 1),
            "plain ÷ it": lambda row: f"{plain_files / row['ms']:.2f}",
            "recall, one probe": lambda row: _share(self.files.recall[row["name"]]),
        }
        return loop, files

    def terminal(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Each loop, at its fastest batch size, and file to file."""
        headings = ["loop", "batch", "loop,\nms per photo", "plain ÷ it", "memory,\nMB", "file to file,\nms per photo"]
        (loop, files), first, lines = self._columns(), self._fastest(PLAIN.name), []
        loop["plain ÷ it"] = lambda row: f"{first['ms'] / row['ms']:.2f}"  # whatever the batch size of each
        for row in self.files.rows:
            ms, rate, ratio, recall = cells(row, files)
            lines.append([_name(row), *cells(self._fastest(row["name"]), loop), ms, ratio, rate, recall])
        return [*headings, "plain ÷ it", "photos/s", "recall,\none probe"], lines

    def tables(self) -> list[Table]:
        """The loop alone, and file to file."""
        loop, files = self._columns()
        passive = ["passive", "–", "–", "–", _share(self.files.recall["passive"])]
        return [
            Table.of(
                "loop",
                "The loop alone, with photos and pixel bounds on the device. homing optimizes a change of the "
                "network's input size; it is scaled to the photo afterwards, which only file to file includes. "
                f"Memory: {_MEMORY}.",
                {"loop": _name, **loop},
                self.loop,
                groups=group_starts([row["batch"] for row in self.loop]),
            ),
            Table(
                name="files",
                caption="File to file: read, decode, loop, write, release check, catalog; and recall of edited copies.",
                headings=["loop", *files],
                rows=[passive, *([_name(row), *cells(row, files)] for row in self.files.rows)],
            ),
        ]

    def figures(self) -> list[Figure]:
        """The stages of file to file."""
        rows = self.files.rows

        def draw(canvas: matplotlib.figure.Figure) -> None:
            axes = canvas.subplots()
            bar_positions = range(len(rows))
            begins = [0.0] * len(rows)
            for stage, color in zip(STAGES, PALETTE, strict=True):
                widths = [row["stages"][stage] for row in rows]
                axes.barh(bar_positions, widths, 0.6, left=begins, color=color, label=stage)
                begins = [begin + width for begin, width in zip(begins, widths, strict=True)]
            ends = [position + 0.4 for position in bar_positions]
            axes.vlines([row["ms"] for row in rows], [end - 0.8 for end in ends], ends, "black", label="elapsed time")
            axes.set_yticks(bar_positions, [_name(row) for row in rows])
            axes.invert_yaxis()
            axes.set(xlim=(0, None), xlabel="ms per photo")
            axes.grid(visible=False, axis="y")
            axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1))

        caption = "Time by stage, file to file, summed over all threads. The loop excludes the pixel bound; GPU work "
        caption += "counts for the stage that waits for it."
        return [Figure(name="stages", caption=caption, draw=draw, size=(8.0, 1.8 + 0.5 * len(rows)))]


def copy_photos(source: Path, limit: int | None, folder: Path) -> tuple[list[int], list[str]]:
    """Copy the readable photos under unique names; returns their pixel counts and the errors of the others."""
    folder.mkdir()
    pixels, failures = [], []
    for position, found in enumerate(find_photos([source])[:limit]):
        try:
            photo = Photo.load(found.path)
        except PhotoError as error:
            failures.append(str(error))
            continue
        (folder / f"{position:06}-{found.path.name}").write_bytes(photo.data)
        pixels.append(photo.stored_pixels.shape[0] * photo.stored_pixels.shape[1])
    if not pixels:
        raise HomingError(f"none of the {len(failures)} photos can be read; the first error: {failures[0]}")
    return pixels, failures


def demo_jpegs(folder: Path) -> Path:
    """The photos of the demo as JPEG files."""
    folder.mkdir()
    for name, data in demo_photos().items():
        with Image.open(BytesIO(data)) as image:
            converted = image if image.mode in ("L", "RGB") else image.convert("RGB")
            converted.save(folder / f"{Path(name).stem}.jpg", quality=_QUALITY)
    return folder


def _name(row: Row) -> str:
    return "plain loop" if row["name"] == PLAIN.name else f"homing, recipe {row['name']}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"

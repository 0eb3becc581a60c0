"""Compare settings for homing-1: train each for a few epochs and measure retrieval on validation photos.

    python tools/split_coco.py COCO_TRAIN2017_FOLDER SPLIT
    python tools/choose_homing_1.py SPLIT OUT temperature=0.1 temperature=0.15,cells=4096 …

Each candidate is trained for a few epochs and gets its own codebook from the training photos. The retrieval bench then
releases and edits the photos of SPLIT/validation and searches for the copies among SPLIT/distractors. Results are kept
in OUT; the table shows all results in OUT.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from build_homing_1 import descriptors_of, squares_in

from homing._tensors import default_device
from homing.bench.benches.retrieval import RetrievalBench, RetrievalSettings
from homing.bench.tables import markdown
from homing.cli._progress import progress
from homing.codebooks import Codebook
from homing.extractors.descriptor_network import trained_network
from homing.training.descriptors import DescriptorTrainer
from homing.training.run import Run
from homing.training.settings import DescriptorSettings

SPEC = "IVF1024,PQ8x8"  # as many of these distractors per cell as with IVF4096 and 110,000 distractors


def main(
    split: Annotated[Path, typer.Argument(help="The folder with train/, validation/ and distractors/.")],
    out: Annotated[Path, typer.Argument(help="The output folder.")],
    candidates: Annotated[list[str], typer.Argument(help="Settings that differ from the defaults: NAME=VALUE,….")],
    epochs: Annotated[float, typer.Option(help="Epochs of training per candidate.")] = 3.0,
    spec: Annotated[str, typer.Option(help="Codebook spec of every candidate.")] = SPEC,
) -> None:
    """Train and measure each candidate without results, then print the table of all results."""
    for candidate in candidates:
        settings_of(candidate)  # reject invalid settings before training starts
    for candidate in candidates:
        if not (out / candidate / "network.safetensors").is_file():
            train_candidate(candidate, split, out, epochs)
        if not (out / candidate / "results.json").is_file():
            measure(candidate, split, out, spec)
    print(_table(out))


def train_candidate(candidate: str, split: Path, out: Path, epochs: float) -> None:
    """Train the network of a candidate."""
    folder = out / candidate
    folder.mkdir(parents=True, exist_ok=True)
    chosen = DescriptorSettings(epochs=epochs, **settings_of(candidate))
    squares = squares_in(split / "train", chosen.training_size, out)
    Run(folder, DescriptorTrainer(squares, chosen, default_device())).train(
        folder / "network.safetensors", lambda: None, print
    )


def measure(candidate: str, split: Path, out: Path, spec: str) -> None:
    """Train a codebook for the network of a candidate and run the retrieval bench."""
    folder = out / candidate
    # The codebook records the name that loads its network.
    extractor = trained_network(str(folder / "network.safetensors"))
    squares = squares_in(split / "train", DescriptorSettings(**settings_of(candidate)).training_size, out)
    book = Codebook.train(descriptors_of(extractor, squares, 1), spec=spec, extractor=extractor, name=candidate)
    book.write(folder / "network.codebook")
    settings = RetrievalSettings(
        photos=split / "validation",
        distractor_photos=split / "distractors",
        out=folder,
        distractors=sum(1 for _ in (split / "distractors").iterdir()),
        codebooks=[str(folder / "network.codebook")],
    )
    RetrievalBench(settings, progress, f"python tools/choose_homing_1.py {candidate}").run().write(folder)


def settings_of(candidate: str) -> dict[str, Any]:
    """Parse the settings that differ from the defaults."""
    return dict(_setting(pair) for pair in candidate.split(","))


def _setting(pair: str) -> tuple[str, Any]:
    name, _, value = pair.partition("=")
    if not hasattr(DescriptorSettings(), name):
        raise typer.BadParameter(f"unknown setting '{name}'")
    return name, type(getattr(DescriptorSettings(), name))(value)


def _table(out: Path) -> str:
    """Candidates from best to worst, by recall of activated copies at one probe plus recall of exact search."""
    rows = []
    for path in out.glob("*/results.json"):
        means = {(row["recipe"], row["probes"]): row["mean"] for row in json.loads(path.read_text())["rows"]}
        columns = [means["passive", 1], means["paper", 1], means["paper", 16], means["passive", "exact"]]
        rows.append((means["paper", 1] + means["passive", "exact"], path.parent.name, columns))
    headings = ["settings", "passive, 1 probe", "paper, 1 probe", "paper, 16 probes", "passive, exact"]
    return markdown(headings, ([name, *(f"{mean:.3f}" for mean in means)] for _, name, means in sorted(rows)[::-1]))


if __name__ == "__main__":
    typer.run(main)

"""Every code block of the README, of CONTRIBUTING and of the docs runs, on small photos and with small settings."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from fsspec import AbstractFileSystem
from PIL import Image

from tests.bench.helpers import small_photos
from tests.doc_blocks import ROOT, Runner, Step, read_steps
from tests.extractors.published_files import sscd

GENERATED = "docs/reference/cli.md"  # examples that do not follow on each other; test_docs.py checks their options
PAGES = {
    str(path.relative_to(ROOT)): read_steps(path)
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if path != ROOT / GENERATED
}
INSTALLS = "installs packages; test_docs.py checks the names of the extras"
MAKES = "needs the environment .venv, which make installs in minutes; test_docs.py checks the names of the targets"
COCO = "needs the 118,287 photos of COCO, and hours or a GPU"
MEASURES = "measures a machine for minutes or hours"
GPU = "needs a GPU; the commands above it on the page run, with fewer options"
RAY = "starts processes of Ray that outlive the command, on several machines"
# What does not run, by page (* for every page) and by how the command begins, with the reason.
NOT_RUN = {
    ("*", "pip install"): INSTALLS,
    ("*", "make "): MAKES,
    ("docs/tutorial/first-collection.md", "source .venv/bin/activate"): MAKES,
    ("docs/explanation/false-matches.md", "python tools/measure_null"): COCO,
    ("docs/how-to/cluster.md", "ray start"): RAY,
    ("docs/how-to/cluster.md", "homing cluster add /mnt/photos"): RAY,
    ("docs/reference/homing-1.md", "python tools/"): COCO,
    ("docs/reference/homing-1.md", "python benchmarks/forward.py"): MEASURES,
    ("docs/reference/performance.md", "homing bench speed --photos PHOTOS"): GPU,
    ("docs/reference/performance.md", "homing bench speed --photos FLICKR --limit 64"): GPU,
    ("docs/reference/performance.md", "python benchmarks/"): MEASURES,
    ("docs/reference/results.md", "python tools/"): COCO,
    ("docs/reference/results.md", "/usr/bin/time"): "measures memory among a million references",
    ("docs/reference/scale.md", "python benchmarks/"): MEASURES,
}
BENCH = " --limit 2 --distractors 30"
# More options, by how a command begins: small settings instead of those of the docs.
SMALL = {
    "homing bench retrieval --photos FLICKR --limit": BENCH
    + " --recipes passive,paper-fast --descriptors 1100",  # for IVF1024 and IVF512
    "homing bench retrieval": BENCH + " --recipes passive,paper-fast --probes 1,exact --descriptors 300",
    "homing bench detection": BENCH + " --recipes passive,paper-fast --probes 1",
    "homing bench quality": BENCH + " --recipes paper-fast --psnrs 40 --pictures 1",
    "homing bench edits": BENCH + " --recipes passive,paper-fast",
    "homing bench analysis": BENCH + " --recipes passive,paper-fast",
    "homing bench search": BENCH + " --recipe paper-fast",
    "homing bench watermarks": BENCH + " --watermarks hidden",
    "homing bench calibration": "--distractors 8",
    "homing bench speed": "--photos PHOTOS --limit 1 --rounds 1 --batches 1 --recipes paper-fast",
    "homing bench paper": "--extractor homing-1 --spec IVF2,PQ4x4 --descriptors 300 --negatives 4 --parts retrieval"
    " --recipes passive,paper-fast --probes 1",
    "homing train descriptor": "--epochs 1 --pairs 8 --size 64 --training-size 64 --dim 32",
    "homing train hidden": "--bits 20 --size 32 --width 4 --batch 9 --epochs 1",
    "homing codebook train": "--extractor homing-1 --spec IVF4,PQ4x4 --descriptors 300",
    "homing extractors fetch": "--file downloaded.pt",
    "homing cluster": "--workers 1",
    "homing serve": "--host 127.0.0.1 --port 0",
}
# Texts that the commands of a page print.
PRINTED = {
    "README.md": ["2 activated", "\nmatch Match(", '"verdict":"match"', "beach.jpg"],
    "docs/how-to/lance.md": ["2 activated", "match"],
    "docs/how-to/search.md": ["copy.jpg: match"],
    "docs/reference/http.md": ["match Match("],
    "docs/tutorial/first-collection.md": ["2 activated", "copy.jpg: match"],
    "docs/tutorial/python.md": ["activated", "\nmatch\n", "photos/beach.jpg"],
}
# Pages that take seconds rather than tens of them.
FAST = {"CONTRIBUTING.md", *(f"docs/{name}.md" for name in ("how-to/maintain", "how-to/search", "reference/scale"))}
# What a page takes for granted: commands that run before its first one.
BEFORE = {
    "docs/how-to/maintain.md": "homing init COLLECTION\nhoming add COLLECTION photos/",
    "docs/how-to/report.md": "homing init holiday.homing",
    "docs/how-to/search.md": "homing init holiday.homing\nhoming add holiday.homing photos/",
    "docs/how-to/serve.md": "homing init holiday.homing",
    "docs/how-to/networks.md": "cp SPLIT/train/* photos",
    "docs/how-to/training.md": "cp SPLIT/train/* photos",
    "docs/explanation/watermarks.md": "cp SPLIT/train/* photos",
    # The twelfth photo is an activated one.
    "docs/reference/http.md": "homing init holiday.homing\nhoming add holiday.homing eleven\n"
    "homing activate holiday.homing photos/beach.jpg --recipe paper-fast --out released\nhoming serve holiday.homing",
}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small photos under all names that the pages use."""
    folder = tmp_path_factory.mktemp("docs")
    twenty = [f"photo-{number}" for number in range(20)]
    for seed, (name, photos) in enumerate(
        {
            "photos": ["beach", "harbor"],
            "suspicious": ["a"],
            "eleven": twenty[:11],
            "SPLIT/train": twenty,
            "SPLIT/distractors": twenty,
            "FLICKR": ["a", "b", "c"],
            "SPLIT/validation": ["a", "b", "c"],
            "DISC21_DIR/references": [f"R{number:06}" for number in range(8)],
        }.items()
    ):
        small_photos(folder / name, photos, seed)
    for name in ("Flicker8k_Dataset", "seg_pred", "others", "distractors", "DISC21_DIR/train"):
        (folder / name).symlink_to(folder / "SPLIT" / "distractors")
    for name in ("held-out", "PHOTOS"):
        (folder / name).symlink_to(folder / "FLICKR")
    for name, source in {"beach": "beach", "a": "beach", "harbor": "harbor", "b": "harbor"}.items():
        shutil.copy(folder / "photos" / f"{source}.jpg", folder / f"{name}.jpg")
    with Image.open(folder / "beach.jpg") as beach:
        beach.resize((100, 75)).save(folder / "copy.jpg")
    (folder / "DISC21_DIR" / "dev_ground_truth.csv").write_text("query_id,reference_id\nQ00000,R000003\n")
    (folder / "bench").mkdir()
    rows = np.random.default_rng(0).normal(size=(2000, 512)).astype(np.float32)
    for name in ("million.npy", "bench/descriptors-1.npy"):
        np.save(folder / name, rows / np.linalg.norm(rows, axis=1, keepdims=True))
    data = files("homing") / "codebooks" / "data"
    for name, source in {"NEW": "imagenet-lite0", "EACH.codebook": "homing-1"}.items():
        (folder / name).write_bytes((data / f"{source}.codebook").read_bytes())
    return folder


@pytest.fixture(scope="session")
def downloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as SSCD's authors publish it, with random weights."""
    file = tmp_path_factory.mktemp("downloaded") / "downloaded.pt"
    torch.save(sscd().state, file)
    return file


@pytest.fixture
def runner(template: Path, tmp_path: Path) -> Iterator[Runner]:
    folder = shutil.copytree(template, tmp_path / "workspace", symlinks=True)
    with ExitStack() as stack:
        yield Runner(folder, SMALL, stack, {"HOMING_CACHE": str(tmp_path / "cache")})


@pytest.fixture
def bucket(s3_server: AbstractFileSystem) -> Iterator[None]:
    """The bucket s3://bucket with the photos."""
    s3_server.mkdir("bucket")
    with tempfile.TemporaryDirectory() as folder:
        for photo in small_photos(Path(folder) / "photos", ["beach", "harbor"], 0).iterdir():
            s3_server.put(str(photo), f"bucket/photos/{photo.name}")
    yield
    s3_server.rm("bucket", recursive=True)


def reason_not_to_run(step: Step) -> str | None:
    return next(
        (why for (page, start), why in NOT_RUN.items() if page in ("*", step.page) and step.code.startswith(start)),
        None,
    )


def pages() -> Iterator[object]:
    """The pages that have something to run, with the marks of their tests."""
    for page, steps in PAGES.items():
        if any(step.language in ("sh", "python") and reason_not_to_run(step) is None for step in steps):
            marks = [] if page in FAST else [pytest.mark.slow]
            yield pytest.param(page, marks=[*marks, pytest.mark.cluster] if "cluster" in page else marks)


@pytest.mark.parametrize("page", [*pages()])
def test_blocks_run(page: str, runner: Runner, request: pytest.FixtureRequest) -> None:
    steps = [step for step in PAGES[page] if reason_not_to_run(step) is None]
    if any("s3://bucket" in step.code for step in steps if step.language == "sh"):
        request.getfixturevalue("bucket")
    if any(step.code.startswith("homing extractors fetch") for step in steps):
        (runner.folder / "downloaded.pt").symlink_to(request.getfixturevalue("downloaded"))
    for command in BEFORE.get(page, "").splitlines():
        runner.run_command(command)
    for step in steps:
        runner.run(step)
    for text in PRINTED.get(page, ()):
        assert text in runner.printed, f"{text!r} is not in what {page} prints:\n{runner.printed}"


def test_what_does_not_run_is_on_its_page() -> None:
    for page, start in NOT_RUN:
        steps = [step for name in PAGES if page in ("*", name) for step in PAGES[name]]
        assert any(step.code.startswith(start) for step in steps), f"{page} has no command {start}"


def test_scripts_that_do_not_run_have_the_options_shown() -> None:
    scripts = [step.code.split() for steps in PAGES.values() for step in steps if step.code.startswith("python ")]
    for _, script, *words in scripts:
        if script.endswith(".py"):
            source = (ROOT / script).read_text()
            for option in (word for word in words if word.startswith("--")):
                assert f'"{option}"' in source or f"{option[2:].replace('-', '_')}:" in source, f"{script} {option}"


def test_small_settings_and_expectations_are_used() -> None:
    commands = [step.code for steps in PAGES.values() for step in steps if reason_not_to_run(step) is None]
    for start in SMALL:
        assert any(command.startswith(start) for command in commands), start
    assert {*BEFORE, *PRINTED, *FAST} <= {*PAGES}

"""The watermarks bench on the command line."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.bench.helpers import homing, small_network, small_photos
from tests.conftest import descriptors

from homing import codebooks, extractors
from homing.bench.benches.watermarks import WatermarksBench, WatermarksSettings, ssl_watermark
from homing.bench.data import read_descriptor_set
from homing.edits import PAPER
from homing.errors import HomingError
from homing.extractors import describe_images
from homing.extractors.descriptor_network import write_network
from homing.imaging import to_image, to_pixels
from homing.photo import Photo
from homing.watermarks.base import identifier
from homing.watermarks.hidden import KIND, HiddenConfig, HiddenNetwork
from homing.watermarks.ssl import SSLDecoder

pytestmark = pytest.mark.slow

PHOTOS = ["a", "b"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, distractors, training photos, small networks, and untrained networks of HiDDeN."""
    folder = tmp_path_factory.mktemp("workspace")
    small_network(folder)
    (folder / "12").mkdir()
    small_network(folder / "12", side=4).rename(folder / "mid.pt")
    small_network(folder / "12", side=2)
    np.save(folder / "rows.npy", descriptors(24, dim=108).numpy())
    small_photos(folder / "photos", PHOTOS, seed=1)
    small_photos(folder / "others", [str(number) for number in range(24)], seed=2)
    small_photos(folder / "training", [str(number) for number in range(24)], seed=3)
    for bits in (20, 8):
        torch.manual_seed(0)
        config = HiddenConfig(bits=bits, size=32, width=4)
        write_network(HiddenNetwork(config), config, folder / f"hidden-{bits}.safetensors", kind=KIND)
    return folder


def bench(workspace: Path, out: Path, *more: object, code: int = 0) -> str:
    """The output of `homing bench watermarks`."""
    where = ("--photos", workspace / "photos", "--distractor-photos", workspace / "others", "--distractors", 24)
    index = ("--index", "IVF2,PQ4x2", "--train-photos", workspace / "training", "--descriptors", 300)
    networks = ("--hidden", workspace / "hidden-20.safetensors", "--ssl-extractor", workspace / "small.pt")
    settings = ("--extractor", workspace / "small.pt", "--out", out)
    return homing("bench", "watermarks", *where, *index, *networks, *settings, *more, code=code)


@pytest.fixture(scope="module")
def out(workspace: Path) -> Path:
    """The results of one bench."""
    (workspace / "output.txt").write_text(bench(workspace, workspace / "out"))
    return workspace / "out"


def test_every_method_has_a_row_at_the_same_psnr(out: Path) -> None:
    output = json.loads((out / "results.json").read_text())
    assert [row["method"] for row in output["rows"]] == ["passive", "activated", "ssl", "hidden"]
    for row in output["rows"]:
        assert list(row["recall"]) == [edit.label for edit in PAPER]
        assert row["mean"] == pytest.approx(sum(row["recall"].values()) / len(PAPER))
        assert (
            (row["bit_accuracy"] is None) == (row["method"] in ("passive", "activated")) == (row["index"] is not None)
        )
        assert row["codebook"] == row["index"]  # a trained one has the name of its spec
        for label, share in row["recall"].items():
            low, high = row["interval"][label]
            assert low <= share <= high
        if row["method"] != "passive" and row["modified"]:
            assert 43.8 <= row["psnr"] < 44.4
    by_method = {row["method"]: row for row in output["rows"]}
    assert by_method["ssl"]["modified"] == by_method["hidden"]["modified"] == len(PHOTOS)
    assert by_method["hidden"]["mean"] == 0  # with untrained networks


def test_bits_are_decoded_from_the_edited_files(workspace: Path, out: Path) -> None:
    network = extractors.load(str(workspace / "small.pt"), device="cpu")
    (cached,) = out.glob("descriptors-*.npy")
    decoder = SSLDecoder(network, read_descriptor_set(cached, network, 24).descriptors)
    with (out / "copies.csv").open() as file:
        lines = {(line["photo"], line["edit"]): line for line in csv.DictReader(file) if line["method"] == "ssl"}
    assert len(lines) == len(PHOTOS) * len(PAPER)
    for seed, name in enumerate(PHOTOS):
        message = identifier(Photo.load(workspace / "photos" / f"{name}.jpg").sha256, 20)
        image = to_image(Photo.load(out / "released" / "watermarks" / "ssl" / f"{name}.jpg").pixels())
        scores = describe_images(decoder, [to_pixels(edit(image, seed)) for edit in PAPER])
        for edit, right in zip(PAPER, ((scores > 0) == message).sum(dim=1).tolist(), strict=True):
            line = lines[f"{name}.jpg", edit.label]
            assert int(line["correct_bits"]) == right
            assert int(line["is_correct"]) == (right == 20)
        before = describe_images(decoder, [Photo.load(workspace / "photos" / f"{name}.jpg").pixels()])[0]
        assert float(((scores[0] - before) * (2.0 * message - 1)).mean()) > 0  # unedited


def test_tables_include_published_rows(workspace: Path, out: Path) -> None:
    first, _, headings, _, *rows = (out / "table.md").read_text().splitlines()
    assert "all 20 bits" in first and "2 photos among 26 references" in first
    assert all(edit.label in headings for edit in PAPER)
    methods = [row.split("|")[1].strip() for row in rows]
    assert methods == 2 * ["passive", "activated", "SSL watermark", "HiDDeN"]
    assert [("published" in row) for row in rows] == 4 * [False] + 4 * [True]
    assert (out / "bits.md").is_file() and (out / "recall.svg").is_file() and (out / "report.html").is_file()
    output = (workspace / "output.txt").read_text()
    for row in json.loads((out / "results.json").read_text())["rows"]:
        assert f"{row['mean']:.3f}" in output


def test_codebooks_of_one_spec_are_named(workspace: Path, out: Path) -> None:
    output = json.loads((out / "results.json").read_text())["rows"][0]
    setting = WatermarksSettings(photos=workspace, distractor_photos=workspace, out=workspace)
    measured = WatermarksBench(setting, lambda *_: pytest.fail("measured"))
    measured.rows = [{**output, "codebook": name} for name in ("mine", "theirs")]
    headings, _ = measured.terminal()
    assert headings == ["edit", "passive,\nmine", "passive,\ntheirs"]
    assert [line[1] for line in measured.tables()[0].rows[:2]] == ["mine, IVF2,PQ4x2", "theirs, IVF2,PQ4x2"]
    assert "mine" in measured.figures()[0].caption


def test_an_index_without_activation_is_measured_passive(workspace: Path) -> None:
    more = ("--index", "Flat", "--watermarks", "hidden", "--json")
    output = json.loads(bench(workspace, workspace / "flat", *more))
    assert [(row["method"], row["index"]) for row in output["rows"]] == [
        ("passive", "IVF2,PQ4x2"),
        ("activated", "IVF2,PQ4x2"),
        ("passive", "Flat"),
        ("hidden", None),
    ]


def test_a_second_run_uses_the_cache(workspace: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.loads((out / "results.json").read_text())["rows"]
    monkeypatch.setattr("homing.bench.benches.watermarks.mark", lambda *_, **__: pytest.fail("marked again"))
    monkeypatch.setattr("homing.bench.data.to_image", lambda _: pytest.fail("edited again"))
    assert json.loads(bench(workspace, out, "--json"))["rows"] == before


def test_a_bundled_network_is_whitened_on_its_own_distractors(workspace: Path, tmp_path: Path) -> None:
    setting = WatermarksSettings(photos=workspace / "photos", distractor_photos=tmp_path / "rows.npy", out=tmp_path)
    network = extractors.load("imagenet-lite0", device="cpu")
    decoder = ssl_watermark(setting, network, lambda *_: pytest.fail("described again")).decoder
    book = codebooks.load("imagenet-lite0")
    rows = book.decode(codebooks.bundled_distractors(book).codes[:10_000]).numpy()
    assert decoder.fingerprint == SSLDecoder(network, rows).fingerprint
    np.save(tmp_path / "rows.npy", np.ones((24, 7), np.float32))
    small = extractors.load(str(workspace / "small.pt"), device="cpu")
    with pytest.raises(HomingError, match=r"must hold \(N, 108\) descriptors"):
        ssl_watermark(setting, small, lambda *_: pytest.fail("described again"))


def test_a_network_without_bundled_distractors_needs_photos_to_be_whitened(workspace: Path, tmp_path: Path) -> None:
    call = ("--photos", workspace / "photos", "--ssl-extractor", workspace / "small.pt", "--out", tmp_path / "out")
    with pytest.raises(HomingError, match="has no bundled distractors to whiten SSL watermarks on"):
        homing("bench", "watermarks", *call)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--watermarks", "ssl,hiden"), "did you mean 'hidden'"),
        (("--key", -1), "--key takes a value from 0 to"),
        (("--hidden", "missing.safetensors"), "no such file: missing.safetensors"),
        (("--hidden", "{workspace}/hidden-8.safetensors"), "hides 8 bits; train one with --bits 20"),
        (
            ("--ssl-extractor", "{workspace}/12/small.pt"),
            "20 bits need as many dimensions, '.*' has 12; choose another",
        ),
        (
            ("--distractor-photos", "{workspace}/rows.npy", "--ssl-extractor", "{workspace}/mid.pt"),
            r"\(N, 48\) descriptors of .*mid.pt', got \(24, 108\) of float32; a folder of photos works with every",
        ),
    ],
)
def test_a_wrong_call_gets_one_line(
    workspace: Path, tmp_path: Path, more: tuple, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.bench.codebook_bench.describe_photos", lambda *_: pytest.fail("began"))
    with pytest.raises(HomingError, match=line):
        bench(workspace, tmp_path / "out", *(str(each).format(workspace=workspace) for each in more))

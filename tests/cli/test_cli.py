"""The installed `homing` command."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.commands import HOMING, INTERRUPTIBLE, homing, installed


@pytest.fixture(scope="module")
def used(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection, its released photos, and the output of `activate --json`."""
    folder = tmp_path_factory.mktemp("used")
    installed("init", folder / "c.homing", "--with-distractors")
    done = installed("activate", folder / "c.homing", photos, "--out", folder / "released", "--json")
    (folder / "activate.json").write_text(done.stdout)
    return folder


def test_importing_the_command_line_does_not_import_torch() -> None:
    code = "import sys, homing.cli; sys.exit('torch' in sys.modules or 'faiss' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_help_and_version_take_less_than_a_second(argument: str) -> None:
    assert min(_seconds(argument) for _ in range(5)) < 1


def _seconds(argument: str) -> float:
    """CPU time of the command, which does not depend on other load."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    installed(argument)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_activate_json_has_state_quality_and_file(used: Path, photos: Path) -> None:
    output = json.loads((used / "activate.json").read_text())
    assert {Path(each["photo"]).name for each in output} == {path.name for path in photos.iterdir()}
    for each in output:
        assert each["state"] == "activated"
        assert each["psnr"] >= 43.8
        assert Path(each["released"]).is_file()


def test_activate_skips_photos_of_an_earlier_job(used: Path, photos: Path) -> None:
    output = homing("activate", used / "c.homing", photos, "--out", used / "released").stdout
    assert output.startswith("4 activated (all by an earlier job). Mean of")


def test_an_edited_copy_is_found(used: Path, photos: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jpg"
    released = Image.open(used / "released" / "flower.jpg")
    released.resize((400, 270)).save(copy, quality=60)
    (answer,) = json.loads(homing("search", used / "c.homing", copy, "-k", 3, "--probes", 1, "--json").stdout)
    assert answer["query"] == str(copy)
    assert answer["matches"][0]["photo"] == str(photos / "flower.jpg")
    assert answer["matches"][0]["distance"] < answer["matches"][1]["distance"]
    output = homing("search", used / "c.homing", copy).stdout
    assert str(photos / "flower.jpg") in output


def test_compare_measures_and_draws_the_difference(used: Path, photos: Path, tmp_path: Path) -> None:
    arguments = [photos / "chelsea.png", used / "released" / "chelsea.png"]
    output = json.loads(homing("compare", *arguments, "--out", tmp_path / "new" / "picture.png", "--json").stdout)
    assert output["psnr"] == pytest.approx(43.8, abs=0.2)
    assert 0.9 < output["ssim"] < 1
    assert 1 <= output["linf"] < 30
    with Image.open(tmp_path / "new" / "picture.png") as picture:
        assert picture.width > 3 * 451
    assert json.loads(homing("compare", arguments[0], arguments[0], "--json").stdout)["psnr"] is None


def test_info_counts_photos_and_distractors(used: Path) -> None:
    about = json.loads(homing("info", used / "c.homing", "--json").stdout)
    assert (about["photos"], about["activated"], about["passive"], about["distractors"]) == (4, 4, 0, 118_287)
    assert "4 activated" in homing("info", used / "c.homing").stdout


@pytest.mark.parametrize("command", ["codebooks", "extractors", "recipes"])
def test_lists_are_the_same_as_text_and_json(command: str) -> None:
    listed = json.loads(homing(command, "--json").stdout)
    output = homing(command).stdout
    assert listed
    assert all(each["name"] in output for each in listed)


def test_each_bad_photo_gets_one_line_and_the_others_are_processed(photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    shutil.copy(photos / "rocket.jpg", folder / "good.jpg")
    (folder / "cut.jpg").write_bytes((photos / "rocket.jpg").read_bytes()[:20_000])
    (folder / "text.jpg").write_text("hello")
    (folder / "zero.jpg").touch()
    for side in (1, 8):
        Image.new("RGB", (side, side)).save(folder / f"tiny{side}.png")
    _bomb(folder / "bomb.png")
    frames = [Image.fromarray(np.full((40, 40), level, np.uint8)) for level in (0, 99, 200)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    os.mkfifo(folder / "pipe.jpg")
    bad = {path.name for path in folder.iterdir()} - {"good.jpg"}
    shutil.copy(photos / "rocket.jpg", os.fsencode(folder) + b"/not-utf8-\xff.jpg")
    bad.add(r"not-utf8-\udcff.jpg")
    homing("init", tmp_path / "c.homing")
    for command in (["add"], ["activate", "--out", tmp_path / "out", "--recipe", "paper-fast"], ["search"]):
        done = homing(command[0], tmp_path / "c.homing", folder, *command[1:], code=1)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        assert len(lines) == len(bad)
        assert all(any(str(folder / name) in line for line in lines) for name in bad)
        assert f"{len(bad)} failed" in done.stdout
    assert (tmp_path / "out" / "good.jpg").is_file()


def _bomb(path: Path) -> None:
    """A PNG whose header declares 30,000 × 30,000 pixels."""
    import struct
    import zlib

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    data = b"IDAT" + zlib.compress(b"\x00" * 1000)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", len(header)) + chunk + struct.pack(">I", zlib.crc32(chunk))
        + struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
        + struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["add", "nowhere.homing", "{photos}"],
            "nowhere.homing is not a collection; make one with Collection.create, or: homing init",
        ),
        (["add", "{used}/c.homing", "missing.jpg"], "no such file or folder: missing.jpg"),
        (["init", "{used}/c.homing"], "already is a collection, with codebook 'homing-1'"),
        (["init", "new.homing", "--codebook", "homing-2"], "unknown codebook 'homing-2'; did you mean 'homing-1'?"),
        (["activate", "{used}/c.homing", "{photos}", "--out", "o", "--recipe", "papper"], "did you mean 'paper'?"),
        (["activate", "{used}/c.homing", "{photos}", "--out", "o", "--psnr", "7"], "between 20 and 80 dB, got 7"),
        (["activate", "{used}/c.homing", "{photos}", "--out", "{photos}/camera.png/o"], "cannot write into the out"),
        (["activate", "{used}/c.homing", "{photos}", "--out", "o", "--format", "jpg2"], "unknown format 'jpg2'"),
        (["compare", "{photos}/camera.png", "{photos}/flower.jpg"], "must have the same size"),
        (
            ["compare", "{photos}/camera.png", "{photos}/camera.png", "--out", "{photos}/camera.png"],
            "would be overwritten",
        ),
        (["codebook", "train", "{photos}", "--out", "{photos}/camera.png"], "a codebook never changes"),
        (["codebook", "train", "{photos}", "--out", "/proc/b.codebook"], "cannot write into the out folder /proc: "),
        (["codebook", "train", "{photos}", "--spec", "IVF0,PQ8x8"], "has a count of 0"),
        (["add", "{used}/c.homing", "a" * 300], "File name too long"),
        (
            ["codebook", "train", "{photos}", "--spec", "IVF64,PQ8x8"],
            "needs at least 256 training descriptors, got 4",
        ),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    used: Path, photos: Path, tmp_path: Path, arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = homing(*(each.format(used=used, photos=photos) for each in arguments), code=2)
    assert done.stdout == ""
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_train_a_codebook_and_use_it(photos: Path, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    flower = Image.open(photos / "flower.jpg")
    for number in range(256):
        x, y = number % 16 * 20, number // 16 * 10
        flower.crop((x, y, x + 300, y + 200)).save(many / f"{number}.jpg")
    homing("codebook", "train", many, "--spec", "IVF4,PQ8x4", "--out", tmp_path / "mine.codebook")
    homing("init", tmp_path / "mine.homing", "--codebook", tmp_path / "mine.codebook")
    homing("add", tmp_path / "mine.homing", photos)
    (tmp_path / "mine.codebook").unlink()  # the collection has its own copy
    (answer,) = json.loads(homing("search", tmp_path / "mine.homing", photos / "camera.png", "--json").stdout)
    assert answer["matches"][0]["photo"] == str(photos / "camera.png")
    wrong = homing("init", tmp_path / "x.homing", "--codebook", many / "0.jpg", code=2)
    assert "is not a homing codebook" in wrong.stderr


def test_init_in_an_existing_folder_and_in_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[old] c").mkdir()
    assert "[old] c" in homing("init", "[old] c").stdout
    monkeypatch.chdir(tmp_path / "[old] c")
    assert "already is a collection" in homing("init", ".", code=2).stderr


def test_search_in_an_empty_collection(photos: Path, tmp_path: Path) -> None:
    homing("init", tmp_path / "empty.homing")
    assert "the collection is empty" in homing("search", tmp_path / "empty.homing", photos / "camera.png").stdout


@pytest.mark.slow
def test_a_job_stopped_by_ctrl_c_can_be_continued(photos: Path, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(200):
        Image.open(photos / "flower.jpg").rotate(number).save(many / f"{number:03}.jpg")
    homing("init", tmp_path / "c.homing")
    job = subprocess.Popen(
        [*INTERRUPTIBLE, HOMING, "add", tmp_path / "c.homing", many],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 300
    while _count(tmp_path) == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(signal.SIGINT)
    _, output = job.communicate(timeout=300)
    assert job.returncode == 130
    assert "run the same command to continue" in output
    done = _count(tmp_path)
    assert 0 < done < 200
    again = homing("add", tmp_path / "c.homing", many)
    assert f"{200 - done} added, {done} known already." in again.stdout


def _count(folder: Path) -> int:
    import sqlite3

    with sqlite3.connect(f"file:{folder}/c.homing/catalog.sqlite?mode=ro", uri=True) as database:
        (count,) = database.execute("SELECT count(*) FROM photos").fetchone()
    database.close()
    return count


def test_train_a_network_and_a_codebook_for_it(photos: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    with Image.open(photos / "rocket.jpg") as image:
        for number in range(24):
            image.crop((20 * number, 5 * number, 20 * number + 100, 5 * number + 90)).save(few / f"{number}.png")
    (few / "broken.jpg").write_text("hello")
    out = tmp_path / "net.safetensors"
    small = ("--epochs", 1, "--pairs", 8, "--dim", 16, "--size", 64, "--training-size", 64)
    done = homing("train", "descriptor", few, "--out", out, *small, code=1)
    assert "broken.jpg" in done.stderr and "step      2 of 2" in done.stderr and "views/s" in done.stderr
    assert "net.safetensors: held-out recall" in done.stdout.replace("\n", "")
    assert {"record.json", "curves.png", "checkpoint.pt"} <= {path.name for path in (tmp_path / "net.run").iterdir()}
    assert "exists; choose another --out" in homing("train", "descriptor", few, "--out", out, *small, code=2).stderr
    book = tmp_path / "mine.codebook"
    homing(
        "codebook",
        "train",
        few,
        "--extractor",
        out,
        "--spec",
        "IVF4,PQ4x4",
        "--descriptors",
        300,
        "--out",
        book,
        code=1,
    )
    homing("init", tmp_path / "mine.homing", "--codebook", book)
    homing("add", tmp_path / "mine.homing", few / "3.png")
    found = json.loads(homing("search", tmp_path / "mine.homing", few / "3.png", "--json").stdout)
    assert found[0]["matches"][0]["photo"] == str(few / "3.png")


def test_train_checks_its_options_before_reading_photos(photos: Path, tmp_path: Path) -> None:
    assert (
        "must end in .safetensors" in homing("train", "descriptor", photos, "--out", tmp_path / "net.pt", code=2).stderr
    )
    out = tmp_path / "net.safetensors"
    for wrong, says in (
        (("--training-size", 100), "multiple of 16"),
        (("--dim", 10**12), "--dim takes a value from 1 to 16384"),
        (("--init", "homing-2"), "did you mean 'homing-1'"),
        (("--out", photos / "net.safetensors"), "lies inside the folder of photos"),
    ):
        assert says in homing("train", "descriptor", photos, "--out", out, *wrong, code=2).stderr
    assert not out.with_suffix(".run").exists()
    assert "at least 20 photos" in homing("train", "descriptor", photos, "--out", out, code=2).stderr

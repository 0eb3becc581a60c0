"""A batch is recorded in few transactions, but its photos succeed or fail independently."""

import threading
import time
from functools import wraps
from pathlib import Path

import pytest
import torch

from homing import activation
from homing._io.files import write_atomically
from homing.activation import RECIPES
from homing.activation.optimize import optimize
from homing.activation.pipeline import BatchSize
from homing.collection import Collection
from homing.collection.outcome import Outcome
from homing.collection.release import release_photos
from homing.photo import find_photos


def test_a_batch_takes_three_transactions(collection: Collection, photos: Path, tmp_path: Path) -> None:
    statements: list[str] = []
    collection.storage._database.set_trace_callback(statements.append)
    outcomes = collection.activate(photos, tmp_path / "out", recipe="paper-fast")
    assert [outcome.state for outcome in outcomes] == ["activated"] * 4
    assert statements.count("COMMIT") == 3


def test_only_the_photo_that_cannot_be_written_fails(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: object, **settings: object) -> object:
        (tmp_path / "out" / "camera.png").write_bytes(b"another file")
        return activation.activate_batch(*arguments, **settings)

    monkeypatch.setattr("homing.collection.release.activate_batch", slow)
    outcomes = collection.activate(photos, tmp_path / "out", recipe="paper-fast")
    states = {Path(outcome.photo).name: outcome.state for outcome in outcomes}
    assert states.pop("camera.png") == "failed"
    assert set(states.values()) == {"activated"}
    assert (tmp_path / "out" / "camera.png").read_bytes() == b"another file"
    assert collection.info().activated == len(states) == 3


def test_the_next_run_completes_a_crash_within_a_batch(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, reported = tmp_path / "out", []

    def crash(target: Path, data: bytes, *, new: bool) -> None:
        if len(list(out.iterdir())) == 2:
            raise KeyboardInterrupt
        write_atomically(target, data, new=new)

    with monkeypatch.context() as patch:
        patch.setattr("homing._io.paths.write_atomically", crash)
        with pytest.raises(KeyboardInterrupt):
            collection.activate(photos, out, recipe="paper-fast", on_outcome=reported.append)
    assert reported == []
    assert (collection.info().photos, collection.info().activated) == (4, 0)

    def check(outcome: Outcome) -> None:
        assert Path(outcome.released).exists()
        assert collection.search(outcome.released)[0].state == "activated"
        reported.append(outcome)

    before = {path: path.read_bytes() for path in out.iterdir()}
    collection.activate(photos, out, recipe="paper-fast", on_outcome=check)
    assert len(reported) == collection.info().activated == 4
    assert {path: path.read_bytes() for path in before} == before


def test_the_same_photo_twice_in_a_batch_is_one_reference(collection: Collection, photos: Path, tmp_path: Path) -> None:
    duplicate = tmp_path / "duplicate.jpg"
    duplicate.write_bytes((photos / "flower.jpg").read_bytes())
    outcomes = collection.activate([photos / "flower.jpg", duplicate], tmp_path / "out", recipe="paper-fast")
    assert [outcome.state for outcome in outcomes] == ["activated"] * 2
    assert (collection.info().photos, collection.info().activated) == (1, 1)


@pytest.mark.parametrize("engine", [True, False])
def test_only_the_default_loop_runs_batches_concurrently(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: bool
) -> None:
    monkeypatch.setattr(
        "homing.collection.release.batch_size_for", lambda _: BatchSize(photos=1, pixels=1, concurrent=2)
    )
    running, most = threading.Semaphore(2), []
    both = threading.Barrier(2, timeout=120)  # two of four batches; never passed if they ran one after the other

    def loop(images: list[torch.Tensor], **settings: object) -> list[torch.Tensor]:
        with running:
            if engine:
                both.wait()
            else:
                time.sleep(0.2)  # another batch would start in this time
            most.append(2 - running._value)
            return optimize(images, **settings)

    outcomes = release_photos(
        collection,
        find_photos([photos]),
        tmp_path / "out",
        recipe=RECIPES["paper-fast"],
        loop=wraps(optimize)(loop) if engine else loop,
        on_outcome=lambda _: None,
    )
    assert [outcome.state for outcome in outcomes] == ["activated"] * 4
    assert engine or max(most) == 1

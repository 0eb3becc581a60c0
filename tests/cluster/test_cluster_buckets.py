"""Workers read and release photos in a bucket, with the server and keys from their environment."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.helpers import MEMORY, small_codebook
from tests.collection.conftest import NAMES

from homing._io.paths import location
from homing.activation import resolve_recipe
from homing.collection import Collection


@pytest.mark.cluster
def test_photos_collection_and_releases_in_a_bucket(bucket: str, tmp_path: Path) -> None:
    references = bucket.replace("photos", "references.lance")
    Collection.create(references, codebook=small_codebook(tmp_path, "IVF8,PQ12x8")).close()
    out = bucket.replace("photos", "released")
    location(f"{out}/rocket.jpg").write(b"theirs", new=True)
    command = ["cluster", "activate", bucket, "--collection", references, "--out", out]
    done = subprocess.run(
        [sys.executable, "-m", "homing", *map(str, command), "--recipe", "paper-fast", "--workers", "1"],
        env=os.environ | {"RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(MEMORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert f"{bucket}/rocket.jpg: {out}/rocket.jpg exists and was not written for this photo" in done.stderr
    assert location(f"{out}/rocket.jpg").read_bytes() == b"theirs"
    with Collection.open(references) as collection:
        outcomes = collection.activate(bucket, out, recipe=resolve_recipe("paper-fast"))
        assert [outcome.state == "failed" for outcome in outcomes] == [False, False, False, True]
        assert f"{collection.info().activated} activated" in done.stdout, "the second job released photos again"
        for name in NAMES[:3]:
            released = location(f"{out}/{name}").read_bytes()
            assert collection.storage.find_released(hashlib.sha256(released).hexdigest()) is not None
        assert collection.check() == []

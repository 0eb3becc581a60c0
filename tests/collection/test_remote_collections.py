"""References with remote files: moved, changed, removed, activated, checked and migrated."""

from pathlib import Path

import pytest
from tests.collection.conftest import NAMES
from tests.collection.tiny import tiny_codebook, tiny_extractor
from tests.conftest import descriptors
from torch import nn

from homing._io.paths import Address, location
from homing.codebooks import Codebook
from homing.collection import Collection, check, migrate
from homing.errors import HomingError
from homing.extractors import NetworkExtractor
from homing.photo import find_photos


def states(outcomes: list) -> list[str]:
    return [outcome.state for outcome in outcomes]


@pytest.mark.parametrize("where", ["memory", "archive", "web", "bucket"])
def test_remove_by_address_or_remote_folder(where: str, small: Collection, request) -> None:
    address = request.getfixturevalue(where)
    small.add(address)
    inner, chain, outer = address.partition("::")
    assert states(small.remove(f"{inner}/rocket.jpg{chain}{outer}")) == ["removed"]
    assert states(small.remove(f"{inner}/deep{chain}{outer}")) == ["removed"]
    assert states(small.remove(f"{inner}/dee{chain}{outer}")) == ["failed"]
    assert [each.photo for each in small.remove(address)] == [f"{inner}/{name}{chain}{outer}" for name in NAMES[:2]]


@pytest.mark.parametrize("where", ["memory", "archive", "web", "bucket"])
def test_passive_remote_photos_are_activated(where: str, small: Collection, tmp_path, request) -> None:
    small.add(request.getfixturevalue(where))
    outcomes = small.activate_passive(tmp_path / "out", recipe="paper-fast")
    assert set(states(outcomes)) <= {"activated", "unchanged"}
    assert [each.released for each in outcomes] == [str(tmp_path / "out" / name) for name in NAMES]


def test_local_and_remote_photos_have_no_common_folder(memory: str, small: Collection, photos: Path, tmp_path) -> None:
    small.add(memory)
    (tmp_path / "here.png").write_bytes((photos / "camera.png").read_bytes() + b"another")
    small.add(tmp_path / "here.png")
    with pytest.raises(HomingError, match="no common folder"):
        small.activate_passive(tmp_path / "out")


@pytest.mark.parametrize("where", ["memory", "bucket"])
def test_moved_and_changed_remote_files(where: str, small: Collection, folder: Path, request) -> None:
    address = request.getfixturevalue(where)
    small.add(address)
    assert states(small.add(folder)) == ["known"] * 4, "a copy is not a move"
    rocket = location(f"{address}/rocket.jpg")
    assert isinstance(rocket, Address)
    rocket.remove()
    (outcome,) = small.add(folder / "rocket.jpg")
    assert (outcome.state, outcome.moved_from) == ("moved", str(rocket))
    location(f"{address}/camera.png").write((folder / "rocket.jpg").read_bytes() + b"another", new=False)
    assert states(small.add(f"{address}/camera.png", replace=True)) == ["replaced"]
    assert small.info().photos == 4
    assert small.select(f"{address}/camera.png").ids == [5]


def test_an_unavailable_server_is_not_a_moved_file(folder: Path, small: Collection, serve) -> None:
    server, address = serve(folder, user="agency:open sesame")
    welcome = address.replace("://", "://agency:open%20sesame@")
    assert states(small.add(welcome)) == ["added"] * 4
    assert states(small.add(folder)) == ["known"] * 4, (
        "the source is recorded without the password, so the server denies access"
    )
    server.shutdown()
    server.server_close()
    assert states(small.add(folder)) == ["known"] * 4, "down"


def test_passwords_and_signatures_are_never_reported(folder: Path, small: Collection, serve) -> None:
    _, address = serve(folder, user="agency:sesame")
    with_password = address.replace("://", "://agency:sesame@")
    outcomes = small.add(with_password)
    assert [each.photo for each in outcomes] == [f"{address.replace('://', '://***@')}/{name}" for name in NAMES]
    reported = [str(each.reason) for each in small.add(f"{with_password}/missing.jpg")]
    reported += [str(each.reason) for each in small.add(f"{address}/rocket.jpg?X-Amz-Signature=sesame&token=sesame")]
    with pytest.raises(HomingError) as denied:
        find_photos([address.replace("://", "://agency:sesame-no@")])
    with pytest.raises(HomingError) as unreached:
        find_photos(["http://agency:sesame@127.0.0.1:9/photos/?sig=sesame"])
    reported += [str(denied.value), str(unreached.value)]
    assert all("cannot be read" in each and len(each.splitlines()) == 1 for each in reported)
    assert "401" in reported[1]
    assert "sesame" not in "".join(reported)
    small.storage.close()
    assert b"sesame" not in b"".join(file.read_bytes() for file in small.root.iterdir())


@pytest.mark.parametrize("where", ["memory", "bucket", "web"])
def test_a_check_reads_remote_released_files(where: str, small: Collection, request) -> None:
    address = request.getfixturevalue(where)
    out = address.replace("photos", "released")
    outcomes = small.activate(address, out, recipe="paper-fast")
    assert small.check() == []
    location(str(outcomes[0].released)).write(b"scribble", new=False)
    (found,) = small.check()
    assert (found.part, str(outcomes[0].released) in found.problem) == ("release", True)


def test_a_descriptor_is_recomputed_from_a_remote_photo(bucket: str, small: Collection) -> None:
    small.add(bucket)
    with small.storage._transaction() as change:
        change.execute("DELETE FROM descriptors WHERE photo = 2")
    findings = check(small.root, repair=True, extractor=tiny_extractor())
    assert [(each.part, each.repaired) for each in findings] == [("reference", True)]
    assert small.check() == []


def test_migration_to_another_extractor_reads_remote_photos(bucket: str, small: Collection) -> None:
    small.activate(bucket, bucket.replace("photos", "released"), recipe="paper-fast")
    other = NetworkExtractor(nn.AdaptiveAvgPool2d(6), name="other", size=24, device="cpu")
    book = Codebook.train(descriptors(500, dim=other.dim).numpy(), spec="PQ12x4", extractor=other, name="other")
    assert book.extractor_fingerprint != tiny_codebook().extractor_fingerprint
    done = migrate(small.root, book, extractor=other)
    assert (done.photos, done.missing, done.gain_unknown) == (4, [], [])
    assert len(done.gain_kept) + len(done.gain_lost) == small.info().activated

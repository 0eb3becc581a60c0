"""Find, read and release photos on remote storage; errors get one line."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.collection.conftest import NAMES

from homing._io.paths import Address, location
from homing.collection import Collection
from homing.errors import HomingError, PhotoError
from homing.photo import Photo, find_photos, read_file


@pytest.mark.parametrize("where", ["memory", "archive", "web", "bucket"])
def test_remote_photos_are_found_read_and_searched_for(where: str, folder: Path, small: Collection, request) -> None:
    address = request.getfixturevalue(where)
    found = find_photos([address])
    assert [str(each.name) for each in found] == NAMES
    for each in found:
        assert read_file(each.path) == (folder / each.name).read_bytes()
        assert find_photos([str(each.path)])[0].path == each.path, "an address finds its own file"
    assert [each.state for each in small.add(address)] == ["added"] * 4
    assert [each.state for each in small.add(address)] == ["known"] * 4
    assert [each.state for each in small.add(folder)] == ["known"] * 4, "local copies have the same hashes"
    match = small.search(str(found[2].path), k=1)[0]
    assert match.photo == str(found[2].path)
    assert "flower.jpg" in match.photo


@pytest.mark.parametrize("where", ["memory", "bucket", "web"])
def test_photos_are_released_to_remote_folders_once(where: str, small: Collection, request) -> None:
    address = request.getfixturevalue(where)
    out = address.replace("photos", "released")
    outcomes = small.activate(address, out, recipe="paper-fast")
    assert {each.state for each in outcomes} <= {"activated", "unchanged"}
    assert [each.released for each in outcomes] == [f"{out}/{name}" for name in NAMES]
    released = {str(each.released): Photo.load(str(each.released)).sha256 for each in outcomes}
    numbers = {sha256: small.storage.find_released(sha256) for sha256 in released.values()}
    assert None not in numbers.values()
    before = small.info()
    again = small.activate(address, out, recipe="paper-fast")
    assert [(each.state, each.psnr) for each in again] == [(each.state, each.psnr) for each in outcomes]
    assert {name: hashlib.sha256(location(name).read_bytes()).hexdigest() for name in released} == released
    assert small.info().activated == before.activated
    assert [each.state for each in small.add(out)] == ["known"] * 4
    with pytest.raises(HomingError, match="are in the output folder"):
        small.activate(out, out)


@pytest.mark.parametrize("where", ["memory", "bucket", "web"])
def test_existing_remote_files_are_not_overwritten(where: str, small: Collection, request) -> None:
    address = request.getfixturevalue(where)
    existing = location(address.replace("photos", "released") + "/rocket.jpg")
    existing.write(b"existing", new=True)
    with pytest.raises(FileExistsError):
        existing.write(b"mine", new=True)
    outcomes = small.activate(f"{address}/rocket.jpg", address.replace("photos", "released"), recipe="paper-fast")
    assert [each.state for each in outcomes] == ["failed"]
    assert "was not written for this photo" in outcomes[0].reason
    assert existing.read_bytes() == b"existing"


def test_addresses_with_different_secrets_are_different_photos() -> None:
    assert len(find_photos(["https://host/get.jpg?key=1", "https://host/get.jpg?key=2"])) == 2


def test_an_address_with_a_query_is_not_an_input_folder(web: str) -> None:
    with pytest.raises(HomingError, match="give its photos one by one"):
        find_photos([f"{web}/?token=sesame"])
    out = location(f"{web.replace('photos', 'released')}?sig=sesame") / "deep/x.jpg"
    out.write(b"x", new=True)
    assert location(f"{web.replace('photos', 'released')}/deep/x.jpg").read_bytes() == b"x"


def test_a_remote_folder_is_not_a_name_prefix(bucket: str) -> None:
    location(f"{bucket}-others/rocket.jpg").write(b"existing", new=True)
    assert (
        [str(each.name) for each in find_photos([bucket])]
        == [str(each.name) for each in find_photos([bucket + "/"])]
        == NAMES
    )


@pytest.mark.parametrize(
    ("address", "reported"),
    [
        ("abfs://photos@account.dfs.core.windows.net/x.jpg", "abfs://photos@account.dfs.core.windows.net/x.jpg"),
        ("github://agency:photos@main/x.jpg", "github://agency:photos@main/x.jpg"),
        ("sftp://agency@host/x.jpg", "sftp://agency@host/x.jpg"),
        ("sftp://agency:sesame@host/x.jpg", "sftp://***@host/x.jpg"),
        ("https://sesame@host/x.jpg", "https://***@host/x.jpg"),
        ("https://host/x.jpg?pwd=sesame&w=9&jwt=sesame", "https://host/x.jpg?pwd=***&w=9&jwt=***"),
        ("zip://a@b:c/x.jpg::https://agency:sesame@host/x.zip", "zip://a@b:c/x.jpg::https://***@host/x.zip"),
    ],
)
def test_secrets_are_removed_from_addresses(address: str, reported: str) -> None:
    assert str(location(address)) == reported


def test_a_file_address_is_a_path(folder: Path) -> None:
    assert find_photos([f"file://{folder}"]) == find_photos([folder])
    assert location("s3://bucket/x") == Address("s3://bucket/x")
    assert location("photos/x.jpg") == Path("photos/x.jpg")


@pytest.mark.parametrize("out", ["ftp://host/out", "zip://out::/tmp/x.zip", "sftp://host/out"])
def test_storage_without_atomic_writes_is_rejected(out: str, folder: Path, small: Collection) -> None:
    with pytest.raises(HomingError, match="atomic writes are supported only with"):
        small.activate(folder, out)


def test_unreachable_photos_get_one_line(web: str, memory: str, small: Collection) -> None:
    with pytest.raises(PhotoError, match="cannot be read: No such file"):
        read_file(location(web + "/missing.jpg"))
    with pytest.raises(HomingError, match="no such file or folder"):
        find_photos(["memory://bucket/elsewhere"])
    with pytest.raises(HomingError, match="cannot be read"):
        find_photos(["http://127.0.0.1:9/photos/"])
    with pytest.raises(HomingError, match="nowhere://"):
        find_photos(["nowhere://photos"])
    (reported,) = small.add(memory + "/missing.jpg")
    assert (
        f"{reported.photo}: {reported.reason}"
        == "memory://bucket/photos/missing.jpg: cannot be read: No such file or directory"
    )


def test_a_name_outside_its_archive_is_rejected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "slip.zip", "w") as file:
        file.writestr("in/../../slip.jpg", b"x")
    with pytest.raises(HomingError, match="leads outside it"):
        find_photos([f"zip://in::{tmp_path / 'slip.zip'}"])


@pytest.mark.slow
@pytest.mark.parametrize(("library", "scheme", "extra"), [("s3fs", "s3", "s3"), ("aiohttp", "https", "http")])
def test_a_missing_library_names_its_extra(library: str, scheme: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules['{library}'] = None\n"
        "from homing.photo import find_photos\nfrom homing.errors import *\n"
        f"try: find_photos(['{scheme}://bucket/photos'])\nexcept HomingError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(f"pip install 'homing[{extra}]'")
    assert len(done.stdout.splitlines()) == 1


def test_remote_listings_are_not_cached(s3: str, s3_server, monkeypatch: pytest.MonkeyPatch) -> None:
    where = location(s3)
    (where / "one").write(b"1", new=True)
    assert where.names() == ["one"] and not (where / "two").is_file()
    other_client = type(s3_server)(skip_instance_cache=True)
    other_client.pipe_file(f"{s3}/two", b"2")
    assert (where / "two").is_file() and not where.is_file()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    type(s3_server).clear_instance_cache()
    with pytest.raises(OSError):
        (where / "two").is_file()
    type(s3_server).clear_instance_cache()

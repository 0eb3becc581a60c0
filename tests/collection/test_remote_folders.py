"""Photos that lie elsewhere: in memory, in an archive, behind a web server, in a bucket."""

import hashlib
import secrets
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import pytest

from homing._places import Address, place
from homing.collection import Collection
from homing.errors import HomingError, PhotoError
from homing.photo import Photo, gather, read_file

NAMES = ["camera.png", "chelsea.png", "deep/flower.jpg", "rocket.jpg"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Not on the screen."""


@pytest.fixture
def web(folder: Path) -> Iterator[str]:
    """A real web server on this machine that shows the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(photos: Path, tmp_path: Path) -> Path:
    """Four photos, one of them deeper, and what is no photo."""
    for name in NAMES:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((photos / path.name).read_bytes())
    (tmp_path / "photos" / "notes.txt").write_text("no photo")
    (tmp_path / "photos" / ".hidden.jpg").write_text("hidden")
    return tmp_path / "photos"


@pytest.fixture
def archive(folder: Path, tmp_path: Path) -> str:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as file:
        for name in [*NAMES, "notes.txt", ".hidden.jpg"]:
            file.write(folder / name, f"in/{name}")
    return f"zip://in::{tmp_path / 'photos.zip'}"


@pytest.fixture
def memory(folder: Path) -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name in [*NAMES, "notes.txt", ".hidden.jpg"]:
        system.pipe_file(f"/bucket/photos/{name}", (folder / name).read_bytes())
    yield "memory://bucket/photos"
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def bucket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket on a real S3 server on this machine."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    agency = f"agency-{secrets.token_hex(4)}"  # all servers of one process have the same buckets
    system.mkdir(agency)
    for name in [*NAMES, "notes.txt", ".hidden.jpg"]:
        system.pipe_file(f"{agency}/photos/{name}", (folder / name).read_bytes())
    yield f"s3://{agency}/photos"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.parametrize("where", ["memory", "archive", "web", "bucket"])
def test_photos_are_found_read_and_searched_for_anywhere(where: str, folder: Path, collection, request) -> None:
    address = request.getfixturevalue(where)
    found = gather([address])
    assert [str(each.name) for each in found] == NAMES
    for each in found:
        assert read_file(each.path) == (folder / each.name).read_bytes()
        assert gather([str(each.path)])[0].path == each.path, "an address leads back to its file"
    assert [each.state for each in collection.add(address)] == ["added"] * 4
    assert [each.state for each in collection.add(address)] == ["known"] * 4
    assert [each.state for each in collection.add(folder)] == ["known"] * 4, "by their hashes they are the same"
    match = collection.search(str(found[2].path), k=1)[0]
    assert match.photo == str(found[2].path)
    assert "flower.jpg" in match.photo


@pytest.mark.parametrize("where", ["memory", "bucket"])
def test_photos_are_released_anywhere_and_only_once(where: str, collection: Collection, request) -> None:
    address = request.getfixturevalue(where)
    out = address.replace("photos", "released")
    outcomes = collection.activate(address, out, recipe="paper-fast")
    assert {each.state for each in outcomes} <= {"activated", "unchanged"}
    assert [str(each.released) for each in outcomes] == [f"{out}/{name}" for name in NAMES]
    released = {str(each.released): Photo.load(str(each.released)).sha256 for each in outcomes}
    numbers = {sha256: collection.folder.catalogue.find_released(sha256) for sha256 in released.values()}
    assert None not in numbers.values()
    before = collection.info()
    again = collection.activate(address, out, recipe="paper-fast")
    assert [(each.state, each.psnr) for each in again] == [(each.state, each.psnr) for each in outcomes]
    assert {name: hashlib.sha256(place(name).read_bytes()).hexdigest() for name in released} == released
    assert collection.info().activated == before.activated
    assert [each.state for each in collection.add(out)] == ["known"] * 4
    with pytest.raises(HomingError, match="lie in the out folder"):
        collection.activate(out, out)


@pytest.mark.parametrize("where", ["memory", "bucket"])
def test_what_others_put_there_is_not_written_over(where: str, collection: Collection, request) -> None:
    address = request.getfixturevalue(where)
    theirs = place(address.replace("photos", "released") + "/rocket.jpg")
    theirs.write(b"theirs", new=True)
    with pytest.raises(FileExistsError):
        theirs.write(b"mine", new=True)
    outcomes = collection.activate(f"{address}/rocket.jpg", address.replace("photos", "released"), recipe="paper-fast")
    assert [each.state for each in outcomes] == ["failed"]
    assert "was not written for this photo" in outcomes[0].reason
    assert theirs.read_bytes() == b"theirs"


def test_a_file_address_is_a_path(folder: Path) -> None:
    assert gather([f"file://{folder}"]) == gather([folder])
    assert place("s3://bucket/x") == Address("s3://bucket/x")
    assert place("photos/x.jpg") == Path("photos/x.jpg")


@pytest.mark.parametrize("out", ["http://127.0.0.1:9/out", "zip://out::/tmp/x.zip", "sftp://host/out"])
def test_where_files_would_be_seen_half_nothing_is_released(out: str, folder: Path, collection: Collection) -> None:
    with pytest.raises(HomingError, match="files appear whole only with"):
        collection.activate(folder, out)


def test_what_cannot_be_reached_is_said_in_one_line(web: str, memory: str, collection: Collection) -> None:
    with pytest.raises(PhotoError, match="cannot be read: No such file"):
        read_file(place(web + "missing.jpg"))
    with pytest.raises(HomingError, match="no such file or folder"):
        gather(["memory://bucket/elsewhere"])
    with pytest.raises(HomingError, match="cannot be read"):
        gather(["http://127.0.0.1:9/photos/"])
    with pytest.raises(HomingError, match="nowhere://"):
        gather(["nowhere://photos"])
    (told,) = collection.add(memory + "/missing.jpg")
    assert told.reason == "memory://bucket/photos/missing.jpg: cannot be read: No such file or directory"


def test_a_name_that_leads_out_of_its_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "slip.zip", "w") as file:
        file.writestr("in/../../slip.jpg", b"x")
    with pytest.raises(HomingError, match="leads out of it"):
        gather([f"zip://in::{tmp_path / 'slip.zip'}"])


@pytest.mark.parametrize(("library", "scheme", "extra"), [("s3fs", "s3", "s3"), ("aiohttp", "https", "http")])
def test_a_missing_library_is_named_with_what_installs_it(library: str, scheme: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules['{library}'] = None\nfrom homing.photo import gather\nfrom homing.errors import *\n"
        f"try: gather(['{scheme}://bucket/photos'])\nexcept HomingError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(f"pip install 'homing[{extra}]'")
    assert len(done.stdout.splitlines()) == 1

"""Keys and roles, on the command line and over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from tests.service.conftest import Server, Start

from homing.collection import Collection
from homing.errors import HomingError
from homing.service import create_app
from homing.service.auth import ROLES, Caller, Keys, new_key


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homing", "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def keyed_server(
    start_shared_server: Start, key_file: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Server:
    """A `homing serve` that asks for keys."""
    return start_shared_server(tmp_path_factory.mktemp("guarded") / "guarded.homing", "--keys", str(key_file[0]))


ROUTES = [
    ("search", "POST", "/v1/search"),
    ("search", "POST", "/v1/compare"),
    ("search", "GET", "/v1/info"),
    ("search", "GET", "/v1/photos"),
    ("search", "GET", "/v1/photos/1"),
    ("search", "GET", "/v1/photos/1/thumbnail"),
    ("search", "GET", "/v1/photos/1/released"),
    ("search", "GET", "/v1/photos/1/pictures/before"),
    ("contribute", "POST", "/v1/photos"),
    ("contribute", "POST", "/v1/activate"),
    ("contribute", "GET", "/v1/jobs/none"),
    ("admin", "DELETE", "/v1/photos/99"),
    ("admin", "GET", "/metrics"),
]


@pytest.mark.parametrize(("needed", "method", "path"), ROUTES)
def test_each_route_accepts_its_role_and_higher_ones(
    keyed_server: Server, keys: dict[str, str], needed: str, method: str, path: str
) -> None:
    for role in ROLES:
        answer = keyed_server.client.request(method, path, headers=bearer(keys[role]))
        if ROLES.index(role) < ROLES.index(needed):
            assert answer.status_code == 403 and needed in answer.json()["detail"]
        else:
            assert answer.status_code not in (401, 403)


@pytest.mark.parametrize(("needed", "method", "path"), ROUTES)
def test_a_wrong_key_is_rejected(keyed_server: Server, needed: str, method: str, path: str) -> None:
    for headers in ({}, bearer("wrong"), {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
        answer = keyed_server.client.request(method, path, headers=headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer", needed


def test_every_documented_route_is_tested(keyed_server: Server) -> None:
    described = keyed_server.client.get("/openapi.json").json()["paths"]
    open_to_all = {"/healthz", "/readyz"}
    assert {path.replace("{id}", "1").replace("{name}", "before") for path in described} - open_to_all == {
        path.replace("/99", "/1").replace("/none", "/1") for _, _, path in ROUTES
    }
    assert all(keyed_server.client.get(path).status_code == 200 for path in open_to_all)


def test_without_keys_only_loopback_is_served(template: Path) -> None:
    done = run(template, "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2 and "needs keys" in done.stderr and "Traceback" not in done.stderr


def test_a_key_is_printed_once_and_only_its_hash_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "keys.toml"
    done = run("--new-key", "newsdesk", "--role", "contribute", "--keys", path)
    assert done.returncode == 0
    key = done.stdout.strip()
    assert key not in path.read_text() and hashlib.sha256(key.encode()).hexdigest() in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Keys.read(path).find(key) == Caller("newsdesk", "contribute")
    assert run("--new-key", "newsdesk", "--keys", path).returncode == 2


@pytest.mark.parametrize(
    "text", ["", "keys = 3", "[keys.a]\nrole = 'king'\nsha256 = 'x'", "[keys.a]\nrole = 'admin'", "not toml"]
)
def test_an_invalid_key_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.toml").write_text(text)
    with pytest.raises(HomingError, match=r"keys\.toml") as caught:
        Keys.read(tmp_path / "keys.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "ä", "x" * 65, 'a"]'])
def test_invalid_key_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HomingError, match="name of a key"):
        new_key(tmp_path / "keys.toml", name, "search")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "http://[bad"},
        {"Host": "elsewhere.example"},
        {"Host": "[localhost"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
    ],
)
def test_cross_origin_and_proxied_requests_are_refused_without_keys(server: Server, photos: Path, headers) -> None:
    files = {"photo": ("camera.png", (photos / "camera.png").read_bytes())}
    answer: httpx.Response = server.client.post("/v1/photos", files=files, headers=headers)
    assert answer.status_code == 403
    own = server.client.get("/v1/info", headers={"Origin": server.address})
    assert own.status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "status"), [("127.0.0.1", 404), ("::ffff:127.0.0.1", 404), ("192.0.2.7", 403), ("2001:db8::7", 403)]
)
def test_without_keys_the_peer_address_decides_not_the_host_header(template: Path, peer: str, status: int) -> None:
    async def ask(app: FastAPI) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(peer, 4321))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/v1/jobs/none")

    with Collection.open(template) as collection:
        assert asyncio.run(ask(create_app(collection))).status_code == status

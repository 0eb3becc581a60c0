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
from homing.service.keys import ROLES, Caller, Keys, new_key


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homing", "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def guarded(
    starting_for_all: Start, key_ring: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Server:
    """A `homing serve` that asks for keys."""
    return starting_for_all(tmp_path_factory.mktemp("guarded") / "guarded.homing", "--keys", str(key_ring[0]))


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
def test_each_route_takes_its_role_and_those_above(
    guarded: Server, keys: dict[str, str], needed: str, method: str, path: str
) -> None:
    for role in ROLES:
        answer = guarded.client.request(method, path, headers=bearer(keys[role]))
        if ROLES.index(role) < ROLES.index(needed):
            assert answer.status_code == 403 and needed in answer.json()["detail"]
        else:
            assert answer.status_code not in (401, 403)


@pytest.mark.parametrize(("needed", "method", "path"), ROUTES)
def test_without_a_right_key_nothing_is_answered(guarded: Server, needed: str, method: str, path: str) -> None:
    for headers in ({}, bearer("wrong"), {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
        answer = guarded.client.request(method, path, headers=headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer", needed


def test_every_route_that_is_described_is_among_these(guarded: Server) -> None:
    described = guarded.client.get("/openapi.json").json()["paths"]
    open_to_all = {"/healthz", "/readyz"}
    assert {path.replace("{id}", "1").replace("{name}", "before") for path in described} - open_to_all == {
        path.replace("/99", "/1").replace("/none", "/1") for _, _, path in ROUTES
    }
    assert all(guarded.client.get(path).status_code == 200 for path in open_to_all)


def test_without_keys_only_this_machine_is_served(made: Path) -> None:
    done = run(made, "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2 and "without keys" in done.stderr and "Traceback" not in done.stderr


def test_a_key_is_told_once_and_its_hash_kept_for_nobody_else(tmp_path: Path) -> None:
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
def test_a_file_that_is_not_right_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys.toml").write_text(text)
    with pytest.raises(HomingError, match=r"keys\.toml") as caught:
        Keys.read(tmp_path / "keys.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "ä", "x" * 65, 'a"]'])
def test_odd_names_of_keys_are_refused(tmp_path: Path, name: str) -> None:
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
def test_pages_and_proxies_of_others_cannot_use_a_service_without_keys(server: Server, photos: Path, headers) -> None:
    files = {"photo": ("camera.png", (photos / "camera.png").read_bytes())}
    answer: httpx.Response = server.client.post("/v1/photos", files=files, headers=headers)
    assert answer.status_code == 403
    own = server.client.get("/v1/info", headers={"Origin": server.address})
    assert own.status_code == 200


@pytest.mark.parametrize(
    ("peer", "status"), [("127.0.0.1", 404), ("::ffff:127.0.0.1", 404), ("192.0.2.7", 403), ("2001:db8::7", 403)]
)
def test_without_keys_it_matters_who_is_connected_not_which_host_they_name(made: Path, peer: str, status: int) -> None:
    async def ask(app: FastAPI) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=(peer, 4321))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/v1/jobs/none")

    with Collection.open(made) as collection:
        assert asyncio.run(ask(create_app(collection))).status_code == status

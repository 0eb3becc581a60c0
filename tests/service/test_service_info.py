"""Health, contents, headers and the page."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from tests.service.conftest import Server

import homing
from homing.service import responses
from homing.service.routes import status


def test_health_and_readiness(server: Server) -> None:
    assert server.client.get("/healthz").json() == server.client.get("/readyz").json() == {"status": "ok"}


def test_collection_info(server: Server) -> None:
    about = server.client.get("/v1/info").json()
    assert about["photos"] == about["passive"] == 3
    assert about["references"] == 3 + about["distractors"] > 100_000
    assert about["bytes_on_disk"] > 1_000_000
    assert about["version"] == homing.__version__ and "homing" in about["recipes"]


@pytest.mark.parametrize("path", ["/healthz", "/v1/info", "/nowhere"])
def test_every_response_has_the_security_headers(server: Server, path: str) -> None:
    headers = server.client.get(path, headers={"Origin": "https://elsewhere.example"}).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers and "server" not in headers


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_cross_site_requests_are_refused_even_without_an_origin(server: Server, site: str, status: int) -> None:
    """Like browsers' requests for pictures on a page of another site."""
    assert server.client.get("/v1/info", headers={"Sec-Fetch-Site": site}).status_code == status


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("PUT", "/v1/search", 405)])
def test_unknown_routes_are_problems_too(server: Server, method: str, path: str, status: int) -> None:
    answer = server.client.request(method, path)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code == status
    assert set(problem) == {"type", "title", "status", "detail", "instance"} and problem["instance"] == path


def test_a_wrong_method_names_the_allowed_ones(server: Server) -> None:
    assert server.client.put("/v1/photos/1").headers["allow"] == "DELETE, GET, HEAD"
    assert server.client.options("/v1/photos").headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/photos/1/thumbnail", "/nowhere"])
def test_head_requests_are_answered(server: Server, path: str) -> None:
    """As sent by monitoring tools."""
    whole, head = server.client.get(path), server.client.head(path)
    assert head.status_code == whole.status_code and head.content == b"" != whole.content
    assert head.headers["content-length"] == str(len(whole.content))


def test_any_file_name_fits_into_content_disposition() -> None:
    for name in ("a\r\nSet-Cookie: b.jpg", "Föhr.jpg", 'a"b.jpg', "a\x00b.jpg"):
        header = responses.file_response(b"", name).headers["content-disposition"]
        assert header.isprintable() and unquote(header.partition("UTF-8''")[2]) == name


def test_openapi_lists_every_route(server: Server) -> None:
    described = server.client.get("/openapi.json").json()
    assert {"/v1/search", "/v1/photos", "/v1/photos/{id}", "/v1/info", "/healthz"} <= set(described["paths"])
    search = described["paths"]["/v1/search"]["post"]
    assert "photo" in search["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert list(search["responses"]["422"]["content"]) == ["application/problem+json"]


def test_page_files_are_served_with_etags(server: Server) -> None:
    for name, file in status._page_files().items():
        answer = server.client.get(f"/page/{name}")
        assert answer.content == file.data and answer.headers["content-type"] == file.media_type
        again = server.client.get(f"/page/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    assert server.client.get("/").content == status._page_files()["index.html"].data


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fapp.py", "%2e%2e/app.py", "__init__.py"])
def test_only_page_files_are_served(server: Server, name: str) -> None:
    assert server.client.get(f"/page/{name}").status_code == 404

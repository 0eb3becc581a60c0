"""Authentication and authorization: API keys, roles and the origin of requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from homing.service.keys import Caller, Role
from homing.service.problems import ProblemError
from homing.service.state import ServiceDep

_LOCAL_CALLER = Caller("local", "admin")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def _require_role(role: Role) -> Callable[[Request, ServiceDep], Awaitable[Caller]]:
    async def check(request: Request, service: ServiceDep) -> Caller:
        _reject_cross_site(request)
        if service.keys is None:
            _reject_remote(request)
            return _LOCAL_CALLER
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        caller = service.keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            line = "a key is required: Authorization: Bearer KEY" if not key else "this key is not known"
            raise ProblemError(HTTPStatus.UNAUTHORIZED, line, headers={"WWW-Authenticate": "Bearer"})
        service.rate_limiter.check(caller.name)
        if not caller.has_role(role):
            raise ProblemError(
                HTTPStatus.FORBIDDEN, f"key '{caller.name}' has the role {caller.role}; this request needs {role}"
            )
        return caller

    return check


def _reject_cross_site(request: Request) -> None:
    """Reject requests that a browser sends from a page of another site."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    site = request.headers.get("sec-fetch-site", "none")
    if origin not in (None, f"http://{host}", f"https://{host}") or site not in ("same-origin", "none"):
        raise ProblemError(HTTPStatus.FORBIDDEN, "requests from pages of other sites are refused")


def _reject_remote(request: Request) -> None:
    """Without keys, reject requests from other machines, through proxies, or for another host name.

    Checking the host name prevents DNS rebinding: a foreign page whose host name resolves to this machine.
    """
    if not _is_loopback(request) or any(name in request.headers for name in _PROXY_HEADERS):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "without keys only requests from this machine are answered; serve with --keys FILE"
        )
    try:
        hostname = urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        hostname = None
    if hostname not in LOOPBACK:
        raise ProblemError(HTTPStatus.FORBIDDEN, "without keys only requests to localhost are answered")


def _is_loopback(request: Request) -> bool:
    """Whether the connection comes from this machine."""
    try:
        address = ip_address(request.client.host if request.client else "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


Searcher = Annotated[Caller, Depends(_require_role("search"))]
Contributor = Annotated[Caller, Depends(_require_role("contribute"))]
Admin = Annotated[Caller, Depends(_require_role("admin"))]

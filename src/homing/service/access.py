"""Whether a request may be answered: whose key it has, and where it comes from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from homing.service.keys import Caller, Role
from homing.service.problems import ProblemError
from homing.service.state import Here

_LOCAL = Caller("local", "admin")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def _allowed(role: Role) -> Callable[[Request, Here], Awaitable[Caller]]:
    async def check(request: Request, service: Here) -> Caller:
        _refuse_other_pages(request)
        if service.keys is None:
            _refuse_others(request)
            return _LOCAL
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        caller = service.keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            line = "a key is expected: Authorization: Bearer KEY" if not key else "nobody has this key"
            raise ProblemError(HTTPStatus.UNAUTHORIZED, line, headers={"WWW-Authenticate": "Bearer"})
        service.rates.count(caller.name)
        if not caller.may(role):
            raise ProblemError(
                HTTPStatus.FORBIDDEN, f"key '{caller.name}' has the role {caller.role}, this needs {role}"
            )
        return caller

    return check


def _refuse_other_pages(request: Request) -> None:
    """A page of somebody else may make a browser post a form, or show a picture; browsers say from where."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    site = request.headers.get("sec-fetch-site", "none")
    if origin not in (None, f"http://{host}", f"https://{host}") or site not in ("same-origin", "none"):
        raise ProblemError(HTTPStatus.FORBIDDEN, "requests from pages of other sites are not answered")


def _refuse_others(request: Request) -> None:
    """Without keys this machine is served: not those who reach it from elsewhere, or through somebody who says so.

    Nor may a page of somebody else give this machine a name of its own, so as to be taken for ours.
    """
    if not _is_here(request) or any(name in request.headers for name in _FORWARDED):
        raise ProblemError(HTTPStatus.FORBIDDEN, "without keys only this machine is served; serve with --keys FILE")
    try:
        named = urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        named = None
    if named not in LOOPBACK:
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "without keys only requests to this machine's own address are answered"
        )


def _is_here(request: Request) -> bool:
    """Whether who asks is on this machine, as far as the connection tells."""
    try:
        address = ip_address(request.client.host if request.client else "")
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


Searcher = Annotated[Caller, Depends(_allowed("search"))]
Contributor = Annotated[Caller, Depends(_allowed("contribute"))]
Admin = Annotated[Caller, Depends(_allowed("admin"))]

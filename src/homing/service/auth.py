"""Authentication and authorization: API keys with roles, and the origin of requests.

A TOML file holds the names, roles and hashes of keys; the keys themselves are not stored.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request

from homing._io.files import make_folder, report_write_errors, write_atomically
from homing.errors import HomingError, UnknownNameError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Role = Literal["search", "contribute", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each role includes those before it."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Caller:
    """The name and role of a key."""

    name: str
    role: Role


class Keys:
    """The keys of a service."""

    def __init__(self, callers: dict[str, Caller]) -> None:
        """`callers` maps SHA-256 hashes of keys to callers."""
        self._callers = callers

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read the keys in a file. Raises HomingError if any entry is invalid."""
        entries = _read_entries(path)
        if not entries:
            raise HomingError(f"{path} holds no keys; make one with: homing serve --new-key NAME --keys {path}")
        return cls({sha256: Caller(name, role) for name, (role, sha256) in entries.items()})

    def find(self, key: str) -> Caller | None:
        """The caller with this key, found in constant time."""
        given, found = _hash_key(key), None
        for sha256, caller in self._callers.items():
            if hmac.compare_digest(given, sha256):
                found = caller
        return found


def new_key(path: Path, name: str, role: str) -> str:
    """Generate a key, and store its hash in the file, readable by its owner only. The key itself is not stored."""
    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)
    if not _NAME.fullmatch(name):
        raise HomingError(f"the name of a key consists of letters, digits, _ and -, at most 64; got {name!a}")
    entries = _read_entries(path) if path.exists() else {}
    if name in entries:
        raise HomingError(f"{path} already holds a key '{name}'; choose another name, or remove that key")
    key = secrets.token_urlsafe(32)
    entries[name] = (role, _hash_key(key))
    text = "\n".join(f'[keys.{each}]\nrole = "{of}"\nsha256 = "{sha256}"\n' for each, (of, sha256) in entries.items())
    with report_write_errors(path):
        make_folder(path.absolute().parent)
        before = os.umask(0o077)
        try:
            write_atomically(path, text.encode())
        finally:
            os.umask(before)
    return key


def _read_entries(path: Path) -> dict[str, tuple[Role, str]]:
    """Roles and hashes by name."""
    try:
        found = tomllib.loads(path.read_text()).get("keys", {})
        entries = {name: (entry["role"], entry["sha256"]) for name, entry in found.items()}
    except OSError as error:
        raise HomingError(f"the keys in {path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise HomingError(f"{path} is not a key file: expected [keys.NAME] with role and sha256") from error
    for name, (role, sha256) in entries.items():
        if role not in ROLES or not re.fullmatch("[0-9a-f]{64}", str(sha256)):
            raise HomingError(
                f"{path}: key '{name}' needs a role ({', '.join(ROLES)}) and the sha256 of a key, 64 hexadecimal digits"
            )
    if len({sha256 for _, sha256 in entries.values()}) < len(entries):
        raise HomingError(f"{path} holds one key under two names; generate a new key for one of them")
    return entries


def _hash_key(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()


def _require_role(role: Role) -> Callable[[Request], Awaitable[Caller]]:
    async def check(request: Request) -> Caller:
        service = request.app.state.service
        _reject_cross_site(request)
        if service.keys is None:
            _reject_remote(request)
            return Caller("local", "admin")
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        caller: Caller | None = service.keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            line = "a key is required: Authorization: Bearer KEY" if not key else "this key is not known"
            raise HTTPException(HTTPStatus.UNAUTHORIZED, line, headers={"WWW-Authenticate": "Bearer"})
        service.rate_limiter.check(caller.name)
        if ROLES.index(caller.role) < ROLES.index(role):
            raise HTTPException(
                HTTPStatus.FORBIDDEN, f"key '{caller.name}' has the role {caller.role}; this request needs {role}"
            )
        return caller

    return check


def _reject_cross_site(request: Request) -> None:
    """Reject requests that a browser sends from a page of another site."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    site = request.headers.get("sec-fetch-site", "none")
    if origin not in (None, f"http://{host}", f"https://{host}") or site not in ("same-origin", "none"):
        raise HTTPException(HTTPStatus.FORBIDDEN, "requests from pages of other sites are refused")


def _reject_remote(request: Request) -> None:
    """Without keys, reject requests from other machines, through proxies, or for another host name.

    Checking the host name prevents DNS rebinding: a foreign page whose host name resolves to this machine.
    """
    if not _is_loopback(request) or any(name in request.headers for name in _PROXY_HEADERS):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "without keys only requests from this machine are answered; serve with --keys FILE"
        )
    try:
        hostname = urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        hostname = None
    if hostname not in LOOPBACK:
        raise HTTPException(HTTPStatus.FORBIDDEN, "without keys only requests to localhost are answered")


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

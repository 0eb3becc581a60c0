"""homing serve: a collection over HTTP, and a page to use it with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homing.cli._console import err_console, one_line

if TYPE_CHECKING:
    from homing.service.keys import Keys
    from homing.service.limits import Limits


def serve(
    collection: Annotated[str | None, typer.Argument(metavar="COLLECTION", help="The collection's folder.")] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; other addresses than this machine's own need keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8321,
    keys: Annotated[
        Path | None, typer.Option(help="Who may do what: a TOML file of names, roles and hashes of keys.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Another limit, such as requests=128; may come again."),
    ] = None,
    new_key: Annotated[
        str | None, typer.Option(metavar="NAME", help="Instead of serving: put a new key into --keys, and print it.")
    ] = None,
    role: Annotated[str, typer.Option(help="Of the new key: search, contribute or admin.")] = "search",
) -> None:
    """Serve a collection: an API to search, add, activate and remove, and a page that does it all.

    It stops at SIGTERM or Ctrl-C, when all that was accepted is done.

    Examples:

        homing serve holiday.homing

        homing serve --new-key newsdesk --role contribute --keys keys.toml

        homing serve holiday.homing --host 0.0.0.0 --keys keys.toml --limit requests=128
    """
    from homing._extras import load_extra
    from homing.errors import HomingError

    for library in ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "skimage"):
        load_extra(library, extra="serve")
    from homing.service.keys import Keys
    from homing.service.keys import new_key as make_key
    from homing.service.limits import Limits

    if new_key is not None:
        if keys is None:
            raise HomingError("where the new key is to be kept must be said: --keys FILE")
        typer.echo(make_key(keys, new_key, role))
        err_console.print(one_line(f"This is shown once; {keys} holds its hash. Send it as: Authorization: Bearer KEY"))
        return
    if collection is None:
        raise HomingError("which collection is to be served must be said: homing serve COLLECTION")
    _run(collection, host, port, None if keys is None else Keys.read(keys), Limits.parse(limit or []))


def _run(collection: str, host: str, port: int, keys: Keys | None, limits: Limits) -> None:
    from homing._io.paths import location, stored_path
    from homing.collection import Collection
    from homing.errors import HomingError
    from homing.service import create_app
    from homing.service.auth import LOOPBACK
    from homing.service.server import bind, run

    if keys is None and host not in LOOPBACK:
        raise HomingError(f"without keys only this machine is served, got --host {host}; give --keys FILE")
    # By its full path, which answers leave out: folders of this machine are told to nobody.
    with bind(host, port) as bound, Collection.open(stored_path(location(collection))) as opened:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound.getsockname()[1]}"
        app = create_app(opened, keys=keys, limits=limits)
        run(app, bound, lambda: err_console.print(one_line(f"Serving {collection} at {address}"), soft_wrap=True))

"""homing serve: a collection over HTTP, with a page to use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import homing
from homing._imports import load_extra
from homing._io.paths import location, stored_path
from homing.cli._console import err_console, one_line
from homing.errors import HomingError


def serve(
    collection: Annotated[
        str | None, typer.Argument(metavar="COLLECTION", help="The collection's folder, or its address.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Any but a loopback address needs --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any free port.")] = 8321,
    keys: Annotated[Path | None, typer.Option(help="A TOML file with names, roles and hashes of keys.")] = None,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER", help="Change a limit, such as requests=128. Repeatable.")
    ] = None,
    new_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write a new key to the --keys file and print it, instead of serving."),
    ] = None,
    role: Annotated[str, typer.Option(help="Role of the new key: search, contribute or admin.")] = "search",
) -> None:
    """Serve a collection: an HTTP API to search, add, activate and remove photos, and a page that uses it.

    SIGTERM or Ctrl-C stops it after the accepted requests are done.

    Examples:

        homing serve holiday.homing

        homing serve --new-key newsdesk --role contribute --keys keys.toml

        homing serve holiday.homing --host 0.0.0.0 --keys keys.toml --limit requests=128
    """
    for library in ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "skimage"):
        load_extra(library, extra="serve")
    from homing.service.auth import new_key as make_key

    if new_key is not None:
        if keys is None:
            raise HomingError("--new-key needs the file to write it to: --keys FILE")
        typer.echo(make_key(keys, new_key, role))
        err_console.print(
            one_line(f"The key is shown only once; {keys} holds its hash. Send it as: Authorization: Bearer KEY")
        )
        return
    if collection is None:
        raise HomingError("the collection is missing: homing serve COLLECTION")
    _run(collection, host, port, keys, homing.service.Limits.parse(limit or []))


def _run(collection: str, host: str, port: int, key_file: Path | None, limits: homing.service.Limits) -> None:
    from homing.service.auth import LOOPBACK, Keys
    from homing.service.server import bind, run

    keys = None if key_file is None else Keys.read(key_file)
    if keys is None and host not in LOOPBACK:
        raise HomingError(f"--host {host} can be reached from other machines and needs keys: add --keys FILE")
    # By its full path: responses strip it, so that no folder of this machine is disclosed.
    with bind(host, port) as bound, homing.Collection.open(stored_path(location(collection))) as opened:
        host_in_url = f"[{host}]" if ":" in host else host
        address = f"http://{host_in_url}:{bound.getsockname()[1]}"
        app = homing.service.create_app(opened, keys=keys, limits=limits)
        run(app, bound, lambda: err_console.print(one_line(f"Serving {collection} at {address}"), soft_wrap=True))

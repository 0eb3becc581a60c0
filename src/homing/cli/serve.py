"""homing serve: a collection over HTTP, and a page to use it with."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._screen import CollectionPath, line, messages

_HERE = ("127.0.0.1", "::1", "localhost")


def serve(
    collection: CollectionPath,
    host: Annotated[
        str, typer.Option(help="Where to listen; other addresses than those of this machine need keys.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8321,
) -> None:
    """Serve a collection: an API to search, add, activate and remove, and a page that does it all.

    It stops at SIGTERM or Ctrl-C, when all that was accepted is done.

    Examples:

        homing serve holiday.homing
    """
    from homing._extras import load_extra
    from homing.collection import Collection
    from homing.errors import HomingError

    for library in ("fastapi", "uvicorn", "python_multipart"):
        load_extra(library, extra="serve")
    from homing.service.app import create_app
    from homing.service.running import bind, run

    if host not in _HERE:
        raise HomingError(f"without keys only this machine is served, got host {host}")
    with bind(host, port) as listening, Collection.open(collection) as opened:
        address = f"http://{'[::1]' if host == '::1' else host}:{listening.getsockname()[1]}"
        run(
            create_app(opened),
            listening,
            lambda: messages.print(line(f"Serving {collection} at {address}"), soft_wrap=True),
        )

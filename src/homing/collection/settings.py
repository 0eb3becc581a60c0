"""What a collection is made of, and the version of its format: in collection.toml, and again in the catalog."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from homing._io.files import write_atomically
from homing._io.paths import Location
from homing.codebooks import Codebook
from homing.collection.catalog import Catalog
from homing.errors import CollectionError, FormatError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1


def write_settings(path: Path, codebook: Codebook, distractors: bytes | None) -> None:
    """Say what a collection is made of: its codebook, and the bytes of its distractors."""
    write_atomically(path / "collection.toml", settings_text(codebook, distractors).encode())


def settings_text(codebook: Codebook, distractors: bytes | None) -> str:
    """The same, as it is written down."""
    settings = {
        "format": FORMAT,
        "codebook": codebook.name,
        "fingerprint": codebook.fingerprint,
        "extractor": codebook.extractor,
    }
    if distractors is not None:
        settings["distractors"] = hashlib.sha256(distractors).hexdigest()
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    return "".join(lines)


def read_settings(path: Location) -> dict[str, Any]:
    """What a collection is made of."""
    file = path / "collection.toml"
    try:
        settings: dict[str, Any] = tomllib.loads(file.read_bytes().decode())
        if not isinstance(settings["format"], int) or settings["format"] < 1:
            raise ValueError(f"there is no format {settings['format']!r}")
        _refuse_later(path, settings["format"])
        for name in ("codebook", "fingerprint", "extractor"):
            if not isinstance(settings[name], str):
                raise ValueError(f"{name} is {settings[name]!r}")
    except (OSError, ValueError, KeyError) as error:
        raise CollectionError(
            f"{file} cannot be read, or is damaged: {error}; repair it with: homing check {path} --repair"
        ) from error
    return settings


def mark_format(catalog: Catalog) -> None:
    """Write the version of the format into a new catalog."""
    with catalog._transaction() as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def open_catalog(path: Path) -> Catalog:
    """The catalog of a collection; one that a later homing made is left alone."""
    catalog = Catalog(path / "catalog.sqlite")
    try:
        ((version,),) = catalog._fetch_all("PRAGMA user_version")  # 0 in those made before it was kept
        _refuse_later(path / "catalog.sqlite", version)
        catalog.upgrade()
    except CollectionError:
        catalog.close()
        raise
    return catalog


def _refuse_later(path: Location, version: int) -> None:
    if version > FORMAT:
        raise FormatError(f"{path} has format {version}, this homing reads format {FORMAT}; upgrade homing")

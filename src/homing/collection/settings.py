"""What a collection is made of, and the version of its format: in collection.toml, and again in the catalog."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
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

FORMAT = 2  # 1 had other names of files, tables and columns


def refuse_other_format(path: Path) -> None:
    """Say so where the settings name another format; whatever else may be wrong with them is told elsewhere."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        _refuse_other_format(path, tomllib.loads((path / "collection.toml").read_text())["format"])


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
        _refuse_other_format(path, settings["format"])
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
    """The catalog of a collection; one of another format is left alone."""
    catalog = Catalog(path / "catalog.sqlite")
    try:
        ((version,),) = catalog._fetch_all("PRAGMA user_version")
        if version:  # 0: a file that is no catalog, which its first reading finds out
            _refuse_other_format(path / "catalog.sqlite", version)
    except CollectionError:
        catalog.close()
        raise
    return catalog


def _refuse_other_format(path: Location, version: int) -> None:
    if version != FORMAT:
        advice = "upgrade homing" if version > FORMAT else "make a new collection and add the photos to it"
        raise FormatError(f"{path} has format {version}, this homing reads format {FORMAT}; {advice}")

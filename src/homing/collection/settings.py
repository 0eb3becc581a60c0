"""Settings and format version of a collection, stored in collection.toml. The catalog has the version too."""

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

FORMAT = 2  # format 1 had other names for files, tables and columns


def refuse_other_format(path: Path) -> None:
    """Raise an error if the settings have another format version. Other problems are not checked here."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        _refuse_other_format(path, tomllib.loads((path / "collection.toml").read_text())["format"])


def write_settings(path: Path, codebook: Codebook, distractors: bytes | None) -> None:
    """Write the settings of a collection with this codebook and these distractors."""
    write_atomically(path / "collection.toml", settings_text(codebook, distractors).encode())


def settings_text(codebook: Codebook, distractors: bytes | None) -> str:
    """The text of collection.toml."""
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
    """Read the settings of a collection."""
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
            f"{file} cannot be read or is damaged: {error}; repair it with: homing check {path} --repair"
        ) from error
    return settings


def mark_format(catalog: Catalog) -> None:
    """Write the format version into a new catalog."""
    with catalog._transaction() as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def open_catalog(path: Path) -> Catalog:
    """Open the catalog of a collection. Raises an error, without changes, if it has another format version."""
    catalog = Catalog(path / "catalog.sqlite")
    try:
        ((version,),) = catalog._fetch_all("PRAGMA user_version")
        if version:  # 0: not a catalog, which the first query reports
            _refuse_other_format(path / "catalog.sqlite", version)
    except CollectionError:
        catalog.close()
        raise
    return catalog


def _refuse_other_format(path: Location, version: int) -> None:
    if version != FORMAT:
        advice = "upgrade homing" if version > FORMAT else "make a new collection and add the photos to it"
        raise FormatError(f"{path} has format {version}, this homing reads format {FORMAT}; {advice}")

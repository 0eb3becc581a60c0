"""What a collection is made of, and the version of its format: in collection.toml, and again in the catalogue."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from homing._files import write_atomically
from homing._places import Place
from homing.codebooks import Codebook
from homing.collection.catalogue import Catalogue
from homing.errors import CollectionError, FormatError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMAT = 1


def write_settings(path: Path, codebook: Codebook, background: bytes | None) -> None:
    """Say what a collection is made of: its codebook, and the bytes of its background."""
    write_atomically(path / "collection.toml", settings_text(codebook, background).encode())


def settings_text(codebook: Codebook, background: bytes | None) -> str:
    """The same, as it is written down."""
    settings = {
        "format": FORMAT,
        "codebook": codebook.name,
        "fingerprint": codebook.fingerprint,
        "extractor": codebook.extractor,
    }
    if background is not None:
        settings["background"] = hashlib.sha256(background).hexdigest()
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    return "".join(lines)


def read_settings(path: Place) -> dict[str, Any]:
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
            f"{file} cannot be read, or is damaged: {error}; mend it with: homing check {path} --repair"
        ) from error
    return settings


def mark_format(catalogue: Catalogue) -> None:
    """Write the version of the format into a new catalogue."""
    with catalogue._change() as change:
        change.execute(f"PRAGMA user_version = {FORMAT}")


def open_catalogue(path: Path) -> Catalogue:
    """The catalogue of a collection; one that a later homing made is left alone."""
    catalogue = Catalogue(path / "catalogue.sqlite")
    try:
        ((version,),) = catalogue._all("PRAGMA user_version")  # 0 in those made before it was kept
        _refuse_later(path / "catalogue.sqlite", version)
        catalogue.upgrade()
    except CollectionError:
        catalogue.close()
        raise
    return catalogue


def _refuse_later(path: Place, version: int) -> None:
    if version > FORMAT:
        raise FormatError(f"{path} has format {version}, this homing reads format {FORMAT}; upgrade homing")

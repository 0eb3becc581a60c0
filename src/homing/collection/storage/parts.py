"""The files that every generation of a collection has, wherever its references are stored.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a private copy: activated photos depend on it permanently
  distractors         codes of distractors (optional)
  uploads/            photos uploaded to the service or added from memory, and their released files
  audit.jsonl         the service's log of who added, released and removed what
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from homing._io.paths import Location, write_file
from homing.codebooks import Codebook, Distractors
from homing.errors import CodebookError, CollectionError, FormatError
from homing.indexes import FaissIndex

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS, CODEBOOK, DISTRACTORS, UPLOADS = "collection.toml", "codebook", "distractors", "uploads"
FIRST_DISTRACTOR_ID = 1 << 48  # ids from here on belong to distractors, not to references
FORMAT = 2  # format 1 had other names for files, tables and columns


@dataclass(frozen=True)
class Parts:
    """The codebook and the distractors of a generation."""

    codebook: Codebook
    distractors: Distractors | None = None

    @property
    def distractor_ids(self) -> range:
        """The ids of the distractors in the index."""
        count = 0 if self.distractors is None else len(self.distractors)
        return range(FIRST_DISTRACTOR_ID, FIRST_DISTRACTOR_ID + count)

    def new_index(self) -> FaissIndex:
        """An index in memory that holds the distractors only."""
        index = FaissIndex(self.codebook)
        if self.distractors is not None:
            index.add(self.distractors.codes, np.arange(self.distractor_ids.start, self.distractor_ids.stop))
        return index

    def write(self, folder: Location) -> None:
        """Write both files, but never over different ones of a concurrent creation. `write_settings` comes last.

        The codebook is the second: a repair writes the settings of a folder that has one.
        """
        if self.distractors is not None:
            _write_new(folder / DISTRACTORS, self.distractors.to_bytes())
        _write_new(folder / CODEBOOK, self.codebook.to_bytes())

    def write_settings(self, folder: Location) -> None:
        """Write the settings, which complete a collection."""
        data = None if self.distractors is None else self.distractors.to_bytes()
        write_file(folder / SETTINGS, settings_text(self.codebook, data).encode(), new=True)


def _write_new(file: Location, data: bytes) -> None:
    try:
        write_file(file, data, new=True)
    except FileExistsError:
        if file.read_bytes() != data:
            raise CollectionError(
                f"{file} is another one, of a collection whose collection.toml is missing; choose another name"
            ) from None


def read_parts(root: Location, path: Location) -> Parts:
    """Read the files of one generation of a collection, and check them against its settings."""
    try:
        settings, codebook = read_settings(path), read_codebook(path)
    except CodebookError as error:
        raise CodebookError(f"{error}; find the problem with: homing check {root}") from error
    if codebook.fingerprint != settings["fingerprint"]:
        raise CollectionError(
            f"{path} was made with codebook '{settings['codebook']}' ({settings['fingerprint'][:12]}), "
            f"but holds '{codebook.name}' ({codebook.fingerprint[:12]}); restore the right codebook"
        )
    return Parts(codebook, read_distractors(path, codebook))


def read_codebook(path: Location) -> Codebook:
    """Read the codebook in a folder."""
    file = path / CODEBOOK
    try:
        return Codebook.from_bytes(file.read_bytes(), str(file))
    except OSError as error:
        raise CodebookError(f"cannot read codebook {file}: {error.strerror}") from error


def read_distractors(path: Location, codebook: Codebook) -> Distractors | None:
    """Read the distractors in a folder, None if there are none."""
    file = path / DISTRACTORS
    try:
        data = file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise CollectionError(f"{file} cannot be read: {error.strerror}") from error
    return Distractors.from_bytes(data, codebook, str(file)) if data is not None else None


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
    file = path / SETTINGS
    try:
        settings: dict[str, Any] = tomllib.loads(file.read_bytes().decode())
        if not isinstance(settings["format"], int) or settings["format"] < 1:
            raise ValueError(f"there is no format {settings['format']!r}")
        refuse_other_format(path, settings["format"])
        for name in ("codebook", "fingerprint", "extractor"):
            if not isinstance(settings[name], str):
                raise ValueError(f"{name} is {settings[name]!r}")
    except (OSError, ValueError, KeyError) as error:
        raise CollectionError(
            f"{file} cannot be read or is damaged: {error}; repair it with: homing check {path} --repair"
        ) from error
    return settings


def refuse_other_format(path: Location, version: int) -> None:
    """Raise an error if this is another format version than the one this homing reads."""
    if version != FORMAT:
        advice = "upgrade homing" if version > FORMAT else "make a new collection and add the photos to it"
        raise FormatError(f"{path} has format {version}, this homing reads format {FORMAT}; {advice}")

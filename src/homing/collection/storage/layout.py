"""The folder of a collection: its generations, and the files that each has, wherever its references are stored.

holiday.homing/
  collection.toml     format version, codebook, extractor
  codebook            a private copy: activated photos depend on it permanently
  distractors         codes of distractors (optional)
  uploads/            photos uploaded to the service or added from memory, and their released files
  audit.jsonl         the service's log of who added, released and removed what
  generation-2/       the next generation: a complete collection with another codebook
  current             number of the current generation if it is not the first, and whether the earlier ones are deleted
  writer.lock         shared by all generations, like snapshot.lock
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from homing._io.paths import Address, Location, write_file
from homing.codebooks import Codebook, Distractors
from homing.errors import CodebookError, CollectionError, FormatError, UnknownNameError
from homing.indexes import FaissIndex

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS, CODEBOOK, DISTRACTORS, UPLOADS = "collection.toml", "codebook", "distractors", "uploads"
FIRST_DISTRACTOR_ID = 1 << 48  # ids from here on belong to distractors, not to references
GENERATIONS = {"previous": -1, "current": 0, "next": 1}
LocationT = TypeVar("LocationT", bound=Location)  # local or remote
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
    settings: dict[str, object] = {"format": FORMAT, "codebook": codebook.name}
    settings |= {"fingerprint": codebook.fingerprint, "extractor": codebook.extractor}
    if distractors is not None:
        settings["distractors"] = hashlib.sha256(distractors).hexdigest()
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


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


def find_generation(path: LocationT, which: str = "current") -> LocationT:
    """The folder of the current, next or previous generation, which must exist."""
    if which not in GENERATIONS:
        raise UnknownNameError("generation", which, GENERATIONS)
    folder = generation_path(path, which)
    if which == "current" and folder != path and not folder.is_dir():
        raise CollectionError(f"{folder}, named in {path / 'current'}, does not exist; restore it from a backup")
    if which != "current" and which not in other_generations(path):
        hint = f"; build it with: homing migrate {path} --codebook NAME_OR_FILE" if which == "next" else ""
        raise CollectionError(f"{path} has no {which} generation{hint}")
    return folder


def generation_path(path: LocationT, which: str) -> LocationT:
    """The path of a generation's folder, which need not exist."""
    return _folder(path, _current(path)[0] + GENERATIONS[which])


def other_generations(path: Location) -> list[str]:
    """The existing generations except the current one: "next", "previous"."""
    number, alone = _current(path)
    possible = ["next", *(["previous"] if number > 1 and not alone else [])]
    return [which for which in possible if (generation_path(path, which) / SETTINGS).is_file()]


def earlier_generations(path: LocationT) -> list[LocationT]:
    """The folders of all generations before the current one, oldest first; none once they are deleted."""
    number, alone = _current(path)
    folders = [] if alone else [_folder(path, before) for before in range(1, number)]
    return [each for each in folders if (each / SETTINGS).is_file()]


def make_current(path: Location) -> None:
    """Make the next generation the current one. Only one file changes, so the switch is atomic."""
    find_generation(path, "next")
    _write(path, f"{_current(path)[0] + 1}\n")


def delete_earlier_generations(path: Location, files: Sequence[str]) -> None:
    """Delete the generations before the current one. After a crash the next call deletes the remains.

    `files` names the files of a generation's storage, which for the first one lie beside others.
    """
    if not deleted_generations(path, files):
        find_generation(path, "previous")
        _write(path, f"{_current(path)[0]} alone\n")
    for each in deleted_generations(path, files):
        delete_path(each)


def deleted_generations(path: LocationT, files: Sequence[str]) -> list[LocationT]:
    """Remaining files of deleted generations. `files` as for `delete_earlier_generations`."""
    number, alone = _current(path)
    if not alone:
        return []
    first = [cast(LocationT, path / name) for name in (SETTINGS, CODEBOOK, DISTRACTORS, *files)]
    return [each for each in [*first, *(_folder(path, before) for before in range(2, number))] if each.exists()]


def delete_path(each: Location) -> None:
    """Delete a file, or a folder with its contents."""
    try:
        if isinstance(each, Address):
            each.remove()
        elif each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()
    except OSError as error:
        raise CollectionError(f"cannot delete {each}: {error.strerror}") from error


def _folder(path: LocationT, number: int) -> LocationT:
    return path if number == 1 else cast(LocationT, path / f"generation-{number}")


def _current(path: Location) -> tuple[int, bool]:
    """The number of the current generation, and whether the earlier ones are deleted."""
    file = path / "current"
    try:
        number, *more = file.read_bytes().decode().split() if file.is_file() else ["1"]
        if more not in ([], ["alone"]):
            raise ValueError(more)
        return int(number), bool(more)
    except (OSError, ValueError) as error:
        raise CollectionError(
            f"{file} cannot be read or is damaged; it must hold the number of a generation"
        ) from error


def _write(path: Location, text: str) -> None:
    try:
        write_file(path / "current", text.encode(), new=False)
    except OSError as error:
        raise CollectionError(f"cannot write {path / 'current'}: {error.strerror}") from error

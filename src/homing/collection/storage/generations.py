"""The generations of a collection: the current one, the next one while it is built, and earlier ones until deleted.

holiday.homing/
  …                 the first generation: the collection as it was created
  generation-2/     the next generation: a complete collection with another codebook
  current           number of the current generation if it is not the first, and whether the earlier ones are deleted
  writer.lock       shared by all generations, like snapshot.lock
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TypeVar, cast

from homing._io.paths import Address, Location, write_file
from homing.collection.storage.parts import CODEBOOK, DISTRACTORS, SETTINGS
from homing.errors import CollectionError, UnknownNameError

LocationT = TypeVar("LocationT", bound=Location)  # local or remote
GENERATIONS = {"previous": -1, "current": 0, "next": 1}


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

"""Where the files of references lie: those that moved, those that are still passive."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from homing.collection.catalogue import Catalogue
from homing.collection.outcome import Outcome
from homing.errors import HomingError
from homing.photo import Found

ANOTHER_FILE = "is another file than the one that was added; homing add --replace it"


def moved_from(catalogue: Catalogue, photo: int, path: Path) -> Path | None:
    """Where the file of a reference lay, if nothing is there any more; from now on its source is this path."""
    source, _ = catalogue.describe(photo)
    if not _gone(Path(source)) or not catalogue.move(photo, source, os.path.abspath(path)):
        return None
    return Path(source)


def _gone(file: Path) -> bool:
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # it may well be there, where nobody may look
    return False


def passive_photos(catalogue: Catalogue) -> tuple[list[Found], dict[Path, set[str]]]:
    """The files of references that are still passive, and the hashes that each may have.

    Their names are relative to the folder that all references have in common, whether passive or not: a job that was
    interrupted gives the same names to what is left.
    """
    expected: dict[Path, set[str]] = {}
    for source, sha256 in catalogue.passive():
        expected.setdefault(Path(source), set()).add(sha256)
    if not expected:
        return [], {}
    try:
        common = os.path.commonpath([Path(each).parent for each in catalogue.outermost()])
    except ValueError as error:
        raise HomingError("the passive photos have no folder in common; name them, or their folders") from error
    return [Found(path, path.relative_to(common)) for path in expected], expected


def left_passive(
    catalogue: Catalogue, expected: Mapping[Path, Container[str]], done: Iterable[Outcome]
) -> list[Outcome]:
    """Those of the expected that are passive still, though their file was activated: it is that of another by now."""
    activated = {outcome.photo for outcome in done if outcome.state != "failed"}
    return [
        Outcome(photo=Path(source), state="failed", reason=f"{source}: {ANOTHER_FILE}")
        for source, sha256 in catalogue.passive()
        if Path(source) in activated and sha256 in expected.get(Path(source), ())
    ]

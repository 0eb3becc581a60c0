"""What can go wrong, in words a user can act on."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HomingError(Exception):
    """The root of all errors homing raises on purpose; its text is one line: expected, got, what to do."""


class PhotoError(HomingError):
    """One photo cannot be read, moved or written; other photos are not affected."""


class UnsupportedError(PhotoError):
    """A file is no photo, or one of a kind that is not read."""


class TooLargeError(PhotoError):
    """A photo has more pixels than are decoded."""


class CodebookError(HomingError):
    """A codebook is unknown, damaged, or belongs to another extractor."""


class CollectionError(HomingError):
    """A collection is missing, damaged, or was asked for something it cannot do."""


class StorageUnavailableError(HomingError):
    """A collection cannot be reached: nothing is known to be wrong with it, and other photos would not fare better."""


class FormatError(CollectionError):
    """A collection has a format of an earlier or a later homing."""


class BusyError(CollectionError):
    """A collection is being changed by somebody else; nothing was done."""


class NotFoundError(CollectionError):
    """A reference is no longer there."""


def ran_out_of_memory(error: Exception) -> bool:
    """Whether NumPy or PyTorch (which raises a plain RuntimeError for it) could not get the memory they asked for."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error))


class UnknownNameError(HomingError):
    """A name that is in no registry; says what was probably meant and what there is."""

    def __init__(self, kind: str, name: str, available: Iterable[str]) -> None:
        self._arguments = (kind, name, names := sorted(available))
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        super().__init__(f"unknown {kind} '{name}'{hint} Available: {', '.join(names)}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str]]]:
        return type(self), self._arguments

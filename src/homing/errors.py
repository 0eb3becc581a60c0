"""Errors with one-line messages that users can act on."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Literal

__all__ = [
    "BusyError",
    "CodebookError",
    "CollectionError",
    "FormatError",
    "HomingError",
    "NotFoundError",
    "PhotoError",
    "StorageUnavailableError",
    "TooLargeError",
    "UnknownNameError",
    "UnsupportedError",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class HomingError(Exception):
    """Base of all errors that homing raises on purpose. The message is one line: expected, got, what to do."""


class PhotoError(HomingError):
    """One photo cannot be read, activated or written. Other photos are not affected."""


class UnsupportedError(PhotoError):
    """A file is not a photo, or has an unsupported format."""


class TooLargeError(PhotoError):
    """A photo has more pixels than the limit."""


class CodebookError(HomingError):
    """A codebook is unknown, damaged, or belongs to another extractor."""


class CollectionError(HomingError):
    """A collection is missing or damaged, or does not support the operation."""


class StorageUnavailableError(HomingError):
    """The storage of a collection cannot be reached. Every other photo would fail too."""


class FormatError(CollectionError):
    """A collection has the format of an earlier or later version of homing."""


class BusyError(CollectionError):
    """Another process or thread is changing the collection. Nothing was done."""


class NotFoundError(CollectionError):
    """A reference does not exist, or no longer."""


_KINDS = {"a number": Real, "a whole number": Integral, "a text": str}


def check_type(name: str, value: object, expected: Literal["a number", "a whole number", "a text"]) -> None:
    """Raise HomingError if a setting is not of the expected type. NumPy's numbers are numbers, True is none."""
    if not isinstance(value, _KINDS[expected]) or isinstance(value, bool):
        raise HomingError(f"{name} must be {expected}, got {value!r}")


def ran_out_of_memory(error: Exception) -> bool:
    """Whether NumPy or PyTorch, which raises a plain RuntimeError, could not allocate memory."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error))


class UnknownNameError(HomingError):
    """A name is unknown. The message suggests a similar name and lists the available ones."""

    def __init__(self, kind: str, name: str, available: Iterable[str]) -> None:
        self._arguments = (kind, name, names := sorted(available))
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        super().__init__(f"unknown {kind} '{name}'{hint} Available: {', '.join(names)}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str]]]:
        return type(self), self._arguments

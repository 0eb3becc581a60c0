"""Locations of photos: local paths, and addresses that fsspec can open, such as s3://bucket/photos."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from homing._imports import install_command
from homing._io.files import make_folder, prepare_output_folder, write_atomically
from homing.errors import HomingError

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "http": "http", "https": "http"}
# Schemes where a file appears only when it is complete.
_ATOMIC_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "http", "https", "memory")
_HTTP_SCHEMES = ("http", "https")
_LOCAL_URL = re.compile(r"(file|local)://", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# Secrets are masked by hand, because fsspec and the libraries that it uses print addresses with them.
# Credentials in front of the host. On the web they may be a token alone; in other schemes they contain a password,
# because a plain name is part of the address, as in abfs://container@account. In archives it would be a file's name.
_CREDENTIALS = re.compile(
    r"\b(?!(?:zip|tar|libarchive|memory|dir|github)://)([a-z][a-z0-9+.-]*://)"
    r"(?:(?<=http://)|(?<=https://)|(?=[^/\s@]*:))[^/\s]+@",
    re.IGNORECASE,
)
_HTTP_URL = re.compile(r"https?://[^\s'\"]+", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(
    r"([?&][^=&]*(?:sig|token|key|secret|passw|pwd|jwt|hmac|credential|auth)[^=&]*=)[^&]*", re.IGNORECASE
)


@dataclass(frozen=True, order=True, repr=False)
class Address:
    """A remote file or folder, or one inside an archive: SCHEME://…, or SCHEME://…::ADDRESS.

    As a string, as in messages and catalogs, it has no passwords and signatures.
    """

    # Not a UPath of universal_pathlib: that prints secrets, loses the host of sftp:// and the account of abfs://, takes
    # a query for a part of a file's name, and says that files do not exist where a server cannot be reached.

    url: str

    def __str__(self) -> str:
        return _without_secrets(self.url)

    __repr__ = __str__

    def __truediv__(self, name: str | PurePath) -> Address:
        inner, chain, outer = self.url.partition("::")
        inner, mark, query = inner.partition("?") if self._is_web else (inner, "", "")
        relative = PurePath(name).as_posix()
        return Address(f"{inner if inner.endswith('/') else inner + '/'}{relative}{mark}{query}{chain}{outer}")

    @property
    def scheme(self) -> str:
        """The part before ://, in lower case."""
        return self.url.partition("://")[0].lower()

    @property
    def _is_web(self) -> bool:
        return self.scheme in _HTTP_SCHEMES

    @property
    def pure_path(self) -> PurePosixPath:
        """The address as a path: s3:/bucket/photos/beach.jpg."""
        inner = str(self).partition("::")[0]
        return PurePosixPath(inner.partition("?")[0] if self._is_web else inner)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.pure_path.name

    @property
    def suffix(self) -> str:
        """The suffix of the name, including the dot."""
        return self.pure_path.suffix

    def read_bytes(self) -> bytes:
        """Read the bytes of the file; OSError if that fails."""
        with self._filesystem() as (system, path):
            data: bytes = system.cat_file(path)
            return data

    def write(self, data: bytes, *, new: bool) -> None:
        """Write the file atomically; with `new`, FileExistsError if it exists."""
        # Creation is exclusive in the request itself: asking before would let two writers overwrite each other.
        with self._filesystem() as (system, path):
            if self._is_web:  # fsspec ignores `mode` for HTTP
                system.pipe_file(path, data, headers={"If-None-Match": "*"} if new else {})
            else:
                system.pipe_file(path, data, mode="create" if new else "overwrite")

    def remove(self) -> None:
        """Delete the file, or all files in the folder."""
        with self._filesystem() as (system, path):
            system.rm(path, recursive=True)

    def size(self) -> int:
        """Total size in bytes of the files in the folder."""
        with self._filesystem() as (system, path):
            return int(system.du(path))

    def is_dir(self) -> bool:
        """Whether the address is a folder that has files."""
        with self._filesystem() as (system, path):
            return bool(system.isdir(path))

    def is_file(self) -> bool:
        """Whether the file exists now; OSError if that is unknown."""
        with self._filesystem() as (system, path):
            return bool(system.isfile(path)) if self._is_web else _kind(system, path) == "file"

    def exists(self) -> bool:
        """Whether a file or folder exists; OSError if that is unknown, where fsspec returns False."""
        with self._filesystem() as (system, path):
            return bool(system.exists(path, strict=True)) if self._is_web else _kind(system, path) is not None

    def files(self) -> Iterator[PurePosixPath]:
        """Files in the folder at any depth, by names relative to it."""
        with self._filesystem() as (system, path):
            found = None if self._is_web and "?" in path else system.find(path)
        if found is None:  # the links of a page are not below its query
            raise HomingError(f"{self}: a web page with a query cannot be read as a folder; give its photos one by one")
        for file in found:
            name = PurePosixPath(file.removeprefix(path.rstrip("/")).lstrip("/"))
            if ".." in name.parts:  # its released file would be written outside the output folder
                raise HomingError(f"{self} contains a file whose name leads outside it, {name}; it is not read")
            yield name

    def names(self) -> list[str]:
        """Names of the files and folders in it, without the placeholder that consoles create for an empty folder."""
        if not self.exists():
            return []
        with self._filesystem() as (system, path):
            found = system.ls(path, detail=False)
        return [name for each in found if (name := each.removeprefix(path.rstrip("/") + "/"))]

    @contextmanager
    def _filesystem(self) -> Iterator[tuple[Any, str]]:
        """The file system of the address, and the path in it; every error in the block becomes an OSError of a line."""
        from fsspec.core import url_to_fs

        try:
            system, path = url_to_fs(self.url)
        except ImportError as error:
            extras = [_EXTRAS[scheme] for scheme in re.findall(r"(\w+)://", self.url.lower()) if scheme in _EXTRAS]
            hint = f"get it: {install_command(extras[0])}" if extras else one_line(error)
            raise HomingError(f"{self}: the library for such addresses is missing; {hint}") from error
        except Exception as error:  # libraries raise many types for settings and permissions
            raise HomingError(f"{self}: cannot be reached: {one_line(error)}") from error
        try:
            system.invalidate_cache()  # other processes may have changed the listing
            yield system, str(path)
        except Exception as error:
            if isinstance(error, FileExistsError) or getattr(error, "status", None) == HTTPStatus.PRECONDITION_FAILED:
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            if isinstance(error, FileNotFoundError):
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
            raise OSError(errno.EIO, one_line(error)) from error


def _kind(system: Any, path: str) -> str | None:
    """Whether there is a "file" or a "directory" at a path of a file system; None if there is nothing."""
    try:
        return str(system.info(path)["type"])
    except FileNotFoundError:
        return None


Location = Path | Address


def location(text: str | Location) -> Location:
    """Parse a path or an address; file:// gives a path."""
    if isinstance(text, Address):
        return text
    if not isinstance(text, str | os.PathLike):
        raise HomingError(f"a path or an address is expected, got {text!r}")
    name = os.fspath(text)
    if "\0" in name:
        raise HomingError(f"{name!r} cannot be the name of a file")
    if isinstance(text, str) and _SCHEME.match(name):
        return Path(_LOCAL_URL.sub("", name)) if _LOCAL_URL.match(name) else Address(name)
    return Path(name)


def printable(where: Location) -> str:
    """A location as text that can be encoded, even if a name is not valid UTF-8."""
    return os.fsencode(str(where)).decode(errors="replace")


def stored_path(where: Location) -> str:
    """The location as it is stored: an address without secrets, or an absolute path."""
    return str(where) if isinstance(where, Address) else os.path.abspath(where)


def is_storable(where: Location) -> bool:
    """Whether the location can be stored: on Linux, names and the working directory may be other bytes than UTF-8."""
    try:
        stored_path(where).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_inside(where: Location, folder: Location) -> bool:
    """Whether a location is a folder or inside it, after links are resolved."""
    if isinstance(where, Path) and isinstance(folder, Path):
        return Path(os.path.realpath(where)).is_relative_to(os.path.realpath(folder))
    return f"{where}/".startswith(str(folder).rstrip("/") + "/")


def path_exists(where: Location) -> bool:
    """Whether a file, folder or link exists at the location."""
    return where.exists() if isinstance(where, Address) else os.path.lexists(where)


def list_names(where: Location) -> list[str]:
    """Names of the files and folders in a folder; empty if it does not exist."""
    if isinstance(where, Address):
        return where.names()
    return [each.name for each in where.iterdir()] if where.exists() else []


def list_files(folder: Location) -> list[PurePath]:
    """Names, relative to a folder, of the files in it at any depth that are not hidden; sorted."""
    if isinstance(folder, Address):
        return sorted(name for name in folder.files() if not any(part.startswith(".") for part in name.parts))
    return sorted(file.relative_to(folder) for file in _visible_files(folder, set()))


def _visible_files(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """The files under a folder that are not hidden; a folder that links to a parent folder is entered once."""
    real = folder.resolve()
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for path in (folder / name for name in names):
        if path.is_dir():
            yield from _visible_files(path, seen)
        else:
            yield path


def total_size(where: Location) -> int:
    """Total size in bytes of the files in a folder, at any depth; files removed meanwhile are skipped."""
    if isinstance(where, Address):
        return where.size()
    total = 0
    for inside, _, names in os.walk(where):  # unlike rglob, it skips folders that disappear
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(inside, name).stat().st_size
    return total


def prepare_output_location(out: Location) -> None:
    """Make the output folder; HomingError, before any work, if files cannot be written there."""
    if isinstance(out, Path):
        prepare_output_folder(out)
    elif out.scheme not in _ATOMIC_SCHEMES:
        raise HomingError(
            f"cannot write into {out}: atomic writes are supported only with {', '.join(_ATOMIC_SCHEMES)}; choose one"
        )


def write_file(where: Location, data: bytes, *, new: bool) -> None:
    """Write a file atomically; with `new`, FileExistsError if it exists."""
    if isinstance(where, Address):
        where.write(data, new=new)
    else:
        make_folder(where.parent)
        write_atomically(where, data, new=new)


def one_line(error: Exception) -> str:
    """The text of an error on one line, without secrets."""
    return _without_secrets(" ".join(str(error).split())) or type(error).__name__


def _without_secrets(text: str) -> str:
    return _HTTP_URL.sub(lambda page: _SECRET_PARAMETER.sub(r"\1***", page[0]), _CREDENTIALS.sub(r"\1***@", text))

"""Locations of photos: local paths, and addresses that fsspec can open, such as s3://bucket/photos."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from homing._extras import install_command
from homing._io.files import folder_size, make_folder, prepare_output_folder, write_atomically
from homing.errors import HomingError

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "http": "http", "https": "http"}
# Where a file is there when all of it is: elsewhere others would see halves.
_ATOMIC_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "http", "https", "memory")
_HTTP_SCHEMES = ("http", "https")
_LOCAL_URL = re.compile(r"(file|local)://", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# Who asks, before the host: on the web a token may be all of it, elsewhere there is a password in it or it is a part of
# the place, such as the container in abfs://container@account. In an archive or in memory it would be a file's name.
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
    """A file or folder that is not on this machine, or inside an archive: SCHEME://…, or SCHEME://…::ADDRESS.

    As a text, which messages and catalogs hold, it is without passwords and signatures.
    """

    url: str

    def __str__(self) -> str:
        return _without_secrets(self.url)

    __repr__ = __str__

    def __truediv__(self, name: str | PurePath) -> Address:
        inner, chain, outer = self.url.partition("::")
        inner, mark, query = inner.partition("?") if self.scheme in _HTTP_SCHEMES else (inner, "", "")
        relative = PurePath(name).as_posix()
        return Address(f"{inner if inner.endswith('/') else inner + '/'}{relative}{mark}{query}{chain}{outer}")

    @property
    def scheme(self) -> str:
        """The part before ://, in lower case."""
        return self.url.partition("://")[0].lower()

    @property
    def pure_path(self) -> PurePosixPath:
        """From the scheme to the name, as a path: s3:/bucket/photos/beach.jpg."""
        inner = str(self).partition("::")[0]
        return PurePosixPath(inner.partition("?")[0] if self.scheme in _HTTP_SCHEMES else inner)

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.pure_path.name

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return self.pure_path.suffix

    def read_bytes(self) -> bytes:
        """Read the bytes of the file; OSError if that fails."""
        system, path = self._filesystem()
        with _as_os_error():
            data: bytes = system.cat_file(path)
            return data

    def write(self, data: bytes, *, new: bool) -> None:
        """Put a file there, whole or not at all; a `new` one not over another: FileExistsError."""
        system, path = self._filesystem()
        with _as_os_error():
            if self.scheme in _HTTP_SCHEMES:  # a PUT, for which fsspec leaves out what it is asked for otherwise
                system.pipe_file(path, data, headers={"If-None-Match": "*"} if new else {})
            else:
                system.pipe_file(path, data, mode="create" if new else "overwrite")

    def is_dir(self) -> bool:
        """Whether there are files below it."""
        system, path = self._filesystem()
        with _as_os_error():
            system.invalidate_cache()  # what was listed before may have changed: others write there, too
            return bool(system.isdir(path))

    def exists(self) -> bool:
        """Whether there is a file or a folder; OSError if nobody can tell, where fsspec would say no."""
        system, path = self._filesystem()
        with _as_os_error():
            system.invalidate_cache()
            if self.scheme in _HTTP_SCHEMES:
                return bool(system.exists(path, strict=True))
            try:
                system.info(path)
            except FileNotFoundError:
                return False
            return True

    def size(self) -> int:
        """How many bytes the files below it take."""
        system, path = self._filesystem()
        with _as_os_error():
            system.invalidate_cache()
            return int(system.du(path))

    def remove(self) -> None:
        """Delete the file, or all files below it."""
        system, path = self._filesystem()
        with _as_os_error():
            system.rm(path, recursive=True)

    def is_file(self) -> bool:
        """Whether there is a file: asked anew, as others write, and not answered by no where nobody answers."""
        system, path = self._filesystem()
        with _as_os_error():
            if self.scheme in _HTTP_SCHEMES:
                return bool(system.isfile(path))
            system.invalidate_cache()
            try:
                return bool(system.info(path)["type"] == "file")
            except FileNotFoundError:
                return False

    def files(self) -> Iterator[PurePosixPath]:
        """The files below it, at any depth, by their names relative to it."""
        system, path = self._filesystem()
        if self.scheme in _HTTP_SCHEMES and "?" in path:  # whose links lead to places below the query
            raise HomingError(f"{self}: a web page with a query is not read as a folder; name its photos one by one")
        with _as_os_error():
            found = system.find(path)
        start = path.rstrip("/")
        for file in found:
            name = PurePosixPath(file.removeprefix(start).lstrip("/"))
            if ".." in name.parts:  # what is released of it would be written somewhere else
                raise HomingError(f"{self} holds a file whose name leads out of it, {name}; it is not read")
            yield name

    def names(self) -> list[str]:
        """What lies in it, files and folders; what a console puts there to show an empty folder is nothing."""
        system, path = self._filesystem()
        if not self.exists():
            return []
        with _as_os_error():
            found = system.ls(path, detail=False)
        start = path.rstrip("/") + "/"
        return [name for each in found if (name := each.removeprefix(start))]

    def _filesystem(self) -> tuple[Any, str]:
        """The file system of it, and its path there."""
        from fsspec.core import url_to_fs

        try:
            system, path = url_to_fs(self.url)
        except ImportError as error:
            extras = [_EXTRAS[scheme] for scheme in re.findall(r"(\w+)://", self.url.lower()) if scheme in _EXTRAS]
            hint = f"get it: {install_command(extras[0])}" if extras else one_line(error)
            raise HomingError(f"{self}: the library for such addresses is missing; {hint}") from error
        except Exception as error:  # whatever a library says about settings and rights
            raise HomingError(f"{self}: cannot be reached: {one_line(error)}") from error
        return system, str(path)


Location = Path | Address


def location(text: str | Location) -> Location:
    """What a user named: an address, or a path; file:// is a path."""
    if isinstance(text, Address):
        return text
    name = os.fspath(text)
    if isinstance(text, str) and _SCHEME.match(name):
        return Path(_LOCAL_URL.sub("", name)) if _LOCAL_URL.match(name) else Address(name)
    return Path(name)


def stored_path(where: Location) -> str:
    """A place as it is written down: an address without secrets, a path from the root on."""
    return str(where) if isinstance(where, Address) else os.path.abspath(where)


def is_inside(where: Location, folder: Location) -> bool:
    """Whether a place is a folder or lies in it, however the two are spelled."""
    if isinstance(where, Path) and isinstance(folder, Path):
        return Path(os.path.realpath(where)).is_relative_to(os.path.realpath(folder))
    return f"{where}/".startswith(str(folder).rstrip("/") + "/")


def path_exists(where: Location) -> bool:
    """Whether there is anything under this name."""
    return where.exists() if isinstance(where, Address) else os.path.lexists(where)


def list_names(where: Location) -> list[str]:
    """What lies in a folder, by names; nothing where there is none."""
    if isinstance(where, Address):
        return where.names()
    return [each.name for each in where.iterdir()] if where.exists() else []


def total_size(where: Location) -> int:
    """How many bytes the files in a folder take, at any depth."""
    return where.size() if isinstance(where, Address) else folder_size(where)


def prepare_output_location(out: Location) -> None:
    """Make the folder that results go into; says at once, before the work, that nothing can be written there."""
    if isinstance(out, Path):
        prepare_output_folder(out)
    elif out.scheme not in _ATOMIC_SCHEMES:
        raise HomingError(
            f"cannot write into {out}: files appear whole only with {', '.join(_ATOMIC_SCHEMES)}; choose one"
        )


def write_file(where: Location, data: bytes, *, new: bool) -> None:
    """Write a file that is seen whole or not at all; a `new` one not over another: FileExistsError."""
    if isinstance(where, Address):
        where.write(data, new=new)
    else:
        make_folder(where.parent)
        write_atomically(where, data, new=new)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Whatever a library raises about a far file is an OSError here, with its reason in one line."""
    try:
        yield
    except Exception as error:
        if isinstance(error, FileExistsError) or getattr(error, "status", None) == HTTPStatus.PRECONDITION_FAILED:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        if isinstance(error, FileNotFoundError):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
        raise OSError(errno.EIO, one_line(error)) from error


def one_line(error: Exception) -> str:
    """The text of an error in one line, without secrets."""
    return _without_secrets(" ".join(str(error).split())) or type(error).__name__


def _without_secrets(text: str) -> str:
    return _HTTP_URL.sub(lambda page: _SECRET_PARAMETER.sub(r"\1***", page[0]), _CREDENTIALS.sub(r"\1***@", text))

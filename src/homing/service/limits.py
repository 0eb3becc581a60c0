"""Limits on photos, bytes and requests, and the admission control that enforces them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from threading import Lock

from homing.errors import HomingError, UnknownNameError
from homing.service.responses import TooBusyError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a service, set with `homing serve --limit NAME=NUMBER`."""

    bytes: int = 50_000_000
    """Bytes of one file."""
    pixels: int = 100_000_000
    """Pixels of one photo, according to its header."""
    photos: int = 64
    """Photos in one request."""
    request_bytes: int = 200_000_000
    """Bytes of one request."""
    memory_bytes: int = 1_000_000_000
    """Bytes of all files in memory."""
    requests: int = 64
    """Requests with photos that are processed or wait."""
    network_queue: int = 1024
    """Network inputs that wait."""
    write_queue: int = 64
    """Changes that wait for the writer."""
    seconds: int = 120
    """Time within which a request must be received."""
    per_minute: int = 600
    """Requests per minute of one key."""

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Limits:
        """The default limits with some replaced, each given as name=number."""
        others = {}
        for each in settings:
            name, _, number = each.partition("=")
            if name not in (known := [field.name for field in fields(cls)]):
                raise UnknownNameError("limit", name, known)
            if not number.isdecimal():
                raise HomingError(f"the limit {name} is a whole number, got {number!a}; expected {name}=NUMBER")
            others[name] = int(number)
        return cls(**others)

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise HomingError(f"the limit {field.name} must be at least 1, got {getattr(self, field.name)}")


class AdmissionControl:
    """Counts requests and their bytes. Thread-safe for bytes, which jobs free from another thread."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.lock = limits, Lock()
        self.requests = self.bytes = 0


class Reservation:
    """The share of the limits that one request takes."""

    def __init__(self, admission: AdmissionControl) -> None:
        self._admission, self._bytes = admission, 0
        self._admitted = self._detached = False

    def admit(self) -> None:
        """Count the request as being processed, once all of it has been received; TooBusyError beyond the limit."""
        if self._admission.requests >= self._admission.limits.requests:
            raise TooBusyError(f"the service is busy with {self._admission.requests} requests; try again")
        self._admission.requests += 1
        self._admitted = True

    def reserve(self, count: int) -> None:
        """Reserve more bytes of memory; TooBusyError beyond the limit."""
        with self._admission.lock:
            if self._admission.bytes + count > self._admission.limits.memory_bytes:
                raise TooBusyError("the memory for photos is full; try again")
            self._admission.bytes += count
        self._bytes += count

    def detach(self) -> Callable[[], None]:
        """Keep the memory after the request is answered; returns the function that releases it."""
        self._detached = True
        return self._free

    def close(self) -> None:
        """Release everything, once the request is answered."""
        self._admission.requests -= self._admitted
        if not self._detached:
            self._free()

    def _free(self) -> None:
        with self._admission.lock:
            self._admission.bytes -= self._bytes
        self._bytes = 0


class RateLimiter:
    """Rate limit per key: a token bucket that holds the requests of one minute.

    By hand, because it is a dozen lines, and libraries for it bring a store of their own or know no Retry-After.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._clock = per_minute, clock
        self._tokens: dict[str, tuple[float, float]] = {}

    def check(self, name: str) -> None:
        """Count one request of this key, or raise TooBusyError."""
        now = self._clock()
        left, last = self._tokens.get(name, (float(self._capacity), now))
        left = min(self._capacity, left + (now - last) * self._capacity / 60)
        if left < 1:
            seconds = math.ceil((1 - left) * 60 / self._capacity)
            raise TooBusyError(
                f"key '{name}' has a limit of {self._capacity} requests a minute; wait {seconds} s", seconds=seconds
            )
        self._tokens[name] = (left - 1, now)

"""How much may be asked of the service at once: photos, bytes, requests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from threading import Lock

from homing.errors import HomingError, UnknownNameError
from homing.service.problems import TooBusyError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may bring, and how many may wait."""

    bytes: int = 50_000_000
    """Of one photo's file."""
    pixels: int = 100_000_000
    """Of one photo, as its header states them."""
    photos: int = 64
    """In one request."""
    request_bytes: int = 200_000_000
    """Of all files of one request."""
    memory_bytes: int = 1_000_000_000
    """Of all files that are in memory at once."""
    requests: int = 64
    """With photos that are at work or wait."""
    network_queue: int = 1024
    """That wait for the network."""
    write_queue: int = 64
    """That wait for the one writer."""
    seconds: int = 120
    """In which a request must have come."""
    per_minute: int = 600
    """Requests of one key."""

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Limits:
        """The limits with some said to be others, each as name=number."""
        others = {}
        for each in settings:
            name, _, number = each.partition("=")
            if name not in (known := [field.name for field in fields(cls)]):
                raise UnknownNameError("limit", name, known)
            if not number.isdecimal():
                raise HomingError(f"the limit {name} is a whole number, got {number!a}; say {name}=NUMBER")
            others[name] = int(number)
        return cls(**others)

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise HomingError(f"the limit {field.name} must be at least 1, got {getattr(self, field.name)}")


class AdmissionControl:
    """Lets requests with photos in, as many as there is room for. Jobs give back their bytes from another thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = Lock()
        self.requests = self.bytes = 0

    def admit(self) -> None:
        """Let one request in, or refuse it."""
        if self.requests >= self._limits.requests:
            raise TooBusyError(f"{self.requests} requests are being worked on, the most that may wait; try again")
        self.requests += 1

    def reserve(self, count: int) -> None:
        """Make room for so many bytes, or refuse them."""
        with self._lock:
            if self.bytes + count > self._limits.memory_bytes:
                raise TooBusyError("the photos of other requests fill the memory there is for them; try again")
            self.bytes += count

    def free(self, count: int) -> None:
        """So many bytes are in memory no more."""
        with self._lock:
            self.bytes -= count


class Reservation:
    """The room that one request takes."""

    def __init__(self, admission: AdmissionControl) -> None:
        self._admission, self._bytes = admission, 0
        self._admitted = self._detached = False

    def admit(self) -> None:
        """All of it has come: it is to be worked on."""
        self._admission.admit()
        self._admitted = True

    def reserve(self, count: int) -> None:
        """Take room for so many bytes more."""
        self._admission.reserve(count)
        self._bytes += count

    def detach(self) -> Callable[[], None]:
        """The bytes outlive the request, which is answered already; gives the function that lets go of them."""
        self._detached = True
        return self._free

    def close(self) -> None:
        """The request is answered."""
        self._admission.requests -= self._admitted
        if not self._detached:
            self._free()

    def _free(self) -> None:
        self._admission.free(self._bytes)
        self._bytes = 0


class RateLimiter:
    """How often each key may ask: a bucket that holds a minute's requests and fills as time goes by."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity, self._clock = per_minute, clock
        self._tokens: dict[str, tuple[float, float]] = {}

    def check(self, name: str) -> None:
        """Count one request of this key, or refuse it."""
        now = self._clock()
        left, last = self._tokens.get(name, (float(self._capacity), now))
        left = min(self._capacity, left + (now - last) * self._capacity / 60)
        if left < 1:
            seconds = math.ceil((1 - left) * 60 / self._capacity)
            raise TooBusyError(
                f"key '{name}' may ask {self._capacity} times a minute; wait {seconds} s", seconds=seconds
            )
        self._tokens[name] = (left - 1, now)

"""Metrics of a running service, in Prometheus text format."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """Requests and latencies by route and stage, queue lengths, batch sizes and references."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "homing_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "homing_request_seconds",
            "Seconds until the response starts.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._stages = Histogram(
            "homing_stage_seconds", "Seconds of a search, by stage.", ["stage"], buckets=_SECONDS, registry=registry
        )
        self._batches = Histogram(
            "homing_batch_size", "Network inputs per batch.", buckets=(1, 2, 4, 8, 16), registry=registry
        )

    def add_gauges(self, references: Callable[[], int], **queues: Callable[[], int]) -> None:
        """Add gauges that are evaluated on each scrape: references, and the length of each queue."""
        waiting = Gauge(
            "homing_queue_length", "Items that wait or are processed, by queue.", ["queue"], registry=self._registry
        )
        for name, count in queues.items():
            waiting.labels(name).set_function(count)
        Gauge("homing_references", "References in the catalog.", registry=self._registry).set_function(references)

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Record a response by route pattern; requests of unknown routes are recorded as one route, of any method."""
        route = getattr(scope.get("route"), "path", "none")
        known = route != "none" and status != HTTPStatus.METHOD_NOT_ALLOWED
        self._requests.labels(scope["method"] if known else "any", route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def observe_stages(self, **seconds: float) -> None:
        """Record the seconds of each stage of a search."""
        for stage, spent in seconds.items():
            self._stages.labels(stage).observe(spent)

    def observe_batch(self, size: int) -> None:
        """Record the size of a batch."""
        self._batches.observe(size)

    def text(self) -> bytes:
        """All metrics in Prometheus text format."""
        return generate_latest(self._registry)

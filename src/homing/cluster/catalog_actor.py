"""The catalog actor: the only process that reads and writes the catalog, on the driver's machine.

It makes a lock across machines unnecessary, for every storage engine. All its methods are idempotent, so that Ray can
restart it and repeat unanswered calls if it is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from homing._extras import load_extra
from homing.collection import Collection

Handler = TypeVar("Handler")


class CatalogActor:
    """Opens the collection and forwards calls to a handler."""

    def __init__(self, collection: str, handler: Callable[[Collection], Any]) -> None:
        self._collection = Collection.open(collection)
        self._handler = handler(self._collection)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the handler."""
        return getattr(self._handler, method)(*arguments)

    def close(self) -> None:
        """Close the catalog."""
        self._collection.close()


class _RemoteHandler:
    """Proxy of the handler for workers: forwards method calls to the actor; returns results and raises errors."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):  # looked up by pickle before the actor is set
            raise AttributeError(method)
        return partial(self._call, method)

    def _call(self, method: str, *arguments: Any) -> Any:
        ray = load_extra("ray", "ray")
        try:
            return ray.get(self._actor.call.remote(method, *arguments))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error


@contextmanager
def open_catalog_actor(collection: str, handler: Callable[[Collection], Handler]) -> Iterator[Handler]:
    """Start a catalog actor with a handler of the collection; yields a proxy of the handler."""
    ray = load_extra("ray", "ray")
    strategies = load_extra("ray.util.scheduling_strategies", "ray")
    driver_node = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor = (
        ray.remote(CatalogActor)
        .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=driver_node)
        .remote(collection, handler)
    )
    try:
        yield cast(Handler, _RemoteHandler(actor))
        ray.get(actor.close.remote())
    finally:
        ray.kill(actor)

"""The catalog actor: one actor, beside the one who runs the job, that alone reads and writes the catalog.

So photos are recorded exactly once without a lock that spans machines, whatever engine a collection has. All that is
asked of it may be asked again, so Ray begins it anew when it is killed, and asks what was not answered once more.
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
    """Where the catalog of a collection is open, and a handler answers."""

    def __init__(self, collection: str, handler: Callable[[Collection], Any]) -> None:
        self._collection = Collection.open(collection)
        self._handler = handler(self._collection)

    def call(self, what: str, *about: Any) -> Any:
        """What the handler says."""
        return getattr(self._handler, what)(*about)

    def close(self) -> None:
        """Let go of the catalog."""
        self._collection.close()


class _RemoteHandler:
    """The handler as workers know it: passes questions on to the catalog actor, and answers and errors back."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, what: str) -> Any:
        if what.startswith("_"):  # which Python asks for, before there is an actor
            raise AttributeError(what)
        return partial(self._ask, what)

    def _ask(self, what: str, *about: Any) -> Any:
        ray = load_extra("ray", "ray")
        try:
            return ray.get(self._actor.call.remote(what, *about))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error


@contextmanager
def open_catalog_actor(collection: str, handler: Callable[[Collection], Handler]) -> Iterator[Handler]:
    """A catalog actor where such a handler of the collection, who is made there, is asked as if it were here."""
    ray = load_extra("ray", "ray")
    strategies = load_extra("ray.util.scheduling_strategies", "ray")
    here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor = (
        ray.remote(CatalogActor)
        .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)
        .remote(collection, handler)
    )
    try:
        yield cast(Handler, _RemoteHandler(actor))
        ray.get(actor.close.remote())
    finally:
        ray.kill(actor)

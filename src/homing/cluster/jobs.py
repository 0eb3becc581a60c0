"""The two jobs: how photos flow, and who does what with them.

    adding      listed -> read -> decode -> describe -> record -> told
                            |                             |
                            +--------- the desk ----------+          one actor, which alone has the catalogue open
                            |                             |
    activating  listed -> read -> decode -> activate -> write -> told

Workers stay, and hold the network. Without GPUs each has a core, and does all that is between listed and told but to
record; beside GPUs tasks read, decode and write, on any machine. Who runs the job lists, records and tells. What is
known or done already leaves the flow where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from homing._places import Address, Place, place, recorded
from homing.activation import Recipe
from homing.activation.workers import Work, worth_compiling
from homing.cluster import stages
from homing.cluster.desk import open_desk
from homing.cluster.flow import Stage, Throughput, run
from homing.cluster.machines import Machines
from homing.collection import Collection, Outcome
from homing.collection.adding import Adding
from homing.collection.releasing import Releases, release, tasks_for
from homing.errors import HomingError
from homing.photo import FoundAt, format_name

Report = Callable[[Outcome], None]


def add(
    found: Sequence[FoundAt[Place]], collection: str, *, machines: Machines | None = None, report: Report
) -> list[Throughput]:
    """Index photos, as `homing.photo.gather` found them, in the collection at this path or address.

    Each is in the catalogue when it is reported; the references are those that `Collection.add` gives. Says what each
    stage did. The same call after a kill goes on.
    """
    where, photos = recorded(place(collection)), [_anywhere(item.path) for item in found]
    with Collection.open(where) as opened, opened.changing(), (machines or Machines()).ready() as workers:
        book = opened.codebook
        book.check(opened.extractor)
        with open_desk(where, Adding) as desk:
            flow = [
                Stage("read", partial(stages.read, desk=desk), takes="files"),
                Stage("decode", partial(stages.decode, network_name=book.extractor), takes="core"),
                Stage("describe", stages.Describe(book, workers.device), takes="network"),
                Stage("record", desk.record, takes="here"),
            ]
            return run(photos, flow, workers, report)


def activate(
    found: Sequence[FoundAt[Place]],
    collection: str,
    out: str | Place,
    *,
    recipe: Recipe,
    format: str | None = None,
    machines: Machines | None = None,
    report: Report,
) -> list[Throughput]:
    """Index photos, activate them, and write into the folder `out` what may be released; else as `add`.

    Each one's file is there, and in the catalogue, when it is reported. The options are those of `Collection.activate`.
    """
    where, target = recorded(place(collection)), _anywhere(place(out))
    photos = [FoundAt(_anywhere(item.path), item.name) for item in found]
    written = format_name(format) if format else None
    with Collection.open(where) as opened, opened.changing():
        tasks = tasks_for(photos, target, written, opened)
        book = opened.codebook
        book.check(opened.extractor)
        with (
            (machines or Machines()).ready() as workers,
            open_desk(where, partial(Releases, recipe=recipe, format=written)) as desk,
        ):
            compiled = worth_compiling(len(tasks), recipe)
            flow = [
                Stage("read", partial(stages.read_tasks, desk=desk), takes="files"),
                Stage("decode", stages.decode_tasks, takes="core"),
                Stage("activate", Work(book, recipe, written, compiled, workers.device), takes="network"),
                Stage("write", partial(release, releases=desk), takes="files"),
            ]
            return run(tasks, flow, workers, report)


def _anywhere(where: Place) -> Place:
    """A place under a name that other processes know it by."""
    if isinstance(where, Address):
        if where.scheme == "memory":
            raise HomingError(f"{where} lies in the memory of one process, which others cannot reach")
        return where
    return place(recorded(where))

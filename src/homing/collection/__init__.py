"""The collection of one user's references on disk: catalog, codes, descriptors and index."""

from homing.collection.checks import check
from homing.collection.collection import Collection
from homing.collection.export import Export
from homing.collection.migration import delete_previous, migrate, switch
from homing.collection.outcome import Finding, Info, MigratedRelease, Migration, Outcome
from homing.collection.references import Reference, Release
from homing.collection.search import Match, SearchResult, SearchSettings, Verdict, verdict_of
from homing.collection.sources import Selection

__all__ = [
    "Collection",
    "Export",
    "Finding",
    "Info",
    "Match",
    "MigratedRelease",
    "Migration",
    "Outcome",
    "Reference",
    "Release",
    "SearchResult",
    "SearchSettings",
    "Selection",
    "Verdict",
    "check",
    "delete_previous",
    "migrate",
    "switch",
    "verdict_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)

"""The collection of one user's references on disk: catalog, codes, descriptors and index."""

from homing.collection._remove import Selection
from homing.collection.checks import check
from homing.collection.collection import Collection
from homing.collection.migration import delete_previous, migrate, switch
from homing.collection.outcome import Finding, Info, MigratedRelease, Migration, Outcome
from homing.collection.references import Reference, Release
from homing.collection.results import Match, SearchPlan, SearchResult, Verdict, verdict_of

__all__ = [
    "Collection",
    "Finding",
    "Info",
    "Match",
    "MigratedRelease",
    "Migration",
    "Outcome",
    "Reference",
    "Release",
    "SearchPlan",
    "SearchResult",
    "Selection",
    "Verdict",
    "check",
    "delete_previous",
    "migrate",
    "switch",
    "verdict_of",
]

"""A folder that holds one user's references: catalogue, codes, descriptors, index."""

from homing.collection._removing import Named
from homing.collection.checking import check
from homing.collection.collection import Collection
from homing.collection.migration import forget, migrate, switch
from homing.collection.outcome import Finding, Info, Match, Migration, Outcome, Released

__all__ = [
    "Collection",
    "Finding",
    "Info",
    "Match",
    "Migration",
    "Named",
    "Outcome",
    "Released",
    "check",
    "forget",
    "migrate",
    "switch",
]

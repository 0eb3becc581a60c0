"""A folder that holds one user's references: catalogue, codes, descriptors, index."""

from homing.collection.collection import Collection
from homing.collection.migration import Migration, Released, forget, migrate, switch
from homing.collection.outcome import Info, Match, Outcome

__all__ = ["Collection", "Info", "Match", "Migration", "Outcome", "Released", "forget", "migrate", "switch"]

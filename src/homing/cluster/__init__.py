"""Add and activate millions of photos on many machines, with Ray Data."""

from homing.cluster.jobs import activate, add
from homing.cluster.ray_pipeline import Resources, Throughput

__all__ = ["Resources", "Throughput", "activate", "add"]


def __dir__() -> list[str]:
    return sorted(__all__)

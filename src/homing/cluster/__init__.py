"""Add and activate millions of photos on many machines, with Ray Data."""

from homing._public import list_public
from homing.cluster.jobs import activate, add
from homing.cluster.ray_pipeline import Throughput
from homing.cluster.resources import Resources

__all__ = ["Resources", "Throughput", "activate", "add"]

__dir__ = list_public(__name__)

"""Photos by the million: the stages of one machine, mapped over many by Ray Data."""

from homing.cluster.flow import Throughput
from homing.cluster.jobs import activate, add
from homing.cluster.machines import Machines

__all__ = ["Machines", "Throughput", "activate", "add"]

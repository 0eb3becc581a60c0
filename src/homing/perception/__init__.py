"""What the eye notices: how far pixels may move, and how far they did."""

from homing.perception.budgets import JND
from homing.perception.jnd import jnd_map
from homing.perception.quality import Quality, measure

__all__ = ["JND", "Quality", "jnd_map", "measure"]

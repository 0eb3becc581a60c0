"""What very many photos take: machines, hours, storage, search, from rates that were measured."""

from homing.planning.answer import Driver, Latency, Part, Plan, Stage
from homing.planning.plan import plan
from homing.planning.question import PASSIVE, Prices, Question
from homing.planning.rates import Rate, measured

__all__ = [
    "PASSIVE",
    "Driver",
    "Latency",
    "Part",
    "Plan",
    "Prices",
    "Question",
    "Rate",
    "Stage",
    "measured",
    "plan",
]

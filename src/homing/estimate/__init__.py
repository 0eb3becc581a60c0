"""Estimates for large collections: machines, hours, storage, search latency and cost, from measured rates."""

from homing._public import list_public
from homing.estimate.calculation import estimate
from homing.estimate.rates import Rate, load_rates
from homing.estimate.request import (
    PASSIVE,
    CostItem,
    Estimate,
    EstimateRequest,
    Latency,
    Prices,
    StageEstimate,
    StorageItem,
)

__all__ = [
    "PASSIVE",
    "CostItem",
    "Estimate",
    "EstimateRequest",
    "Latency",
    "Prices",
    "Rate",
    "StageEstimate",
    "StorageItem",
    "estimate",
    "load_rates",
]

__dir__ = list_public(__name__)

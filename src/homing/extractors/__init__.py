"""Networks that turn a photo into a descriptor."""

from homing.extractors.base import Extractor, NetworkExtractor, describe
from homing.extractors.published import fetch, fetched
from homing.extractors.registry import available, load, register

__all__ = ["Extractor", "NetworkExtractor", "available", "describe", "fetch", "fetched", "load", "register"]

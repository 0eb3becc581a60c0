"""Extractors: networks that compute the descriptor of a photo."""

from homing.extractors.base import Extractor, NetworkExtractor, describe
from homing.extractors.published import fetch, fetched
from homing.extractors.registry import available, load, register

__all__ = ["Extractor", "NetworkExtractor", "available", "describe", "fetch", "fetched", "load", "register"]

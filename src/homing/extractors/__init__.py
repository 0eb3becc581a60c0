"""Extractors: networks that compute the descriptor of a photo."""

from homing.extractors.base import Extractor, NetworkExtractor, describe_images
from homing.extractors.published import fetch, fetched
from homing.extractors.registry import ExtractorLike, available, load, register

__all__ = [
    "Extractor",
    "ExtractorLike",
    "NetworkExtractor",
    "available",
    "describe_images",
    "fetch",
    "fetched",
    "load",
    "register",
]


def __dir__() -> list[str]:
    return sorted(__all__)

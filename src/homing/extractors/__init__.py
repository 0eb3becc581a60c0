"""Extractors: networks that compute the descriptor of a photo."""

from homing._public import list_public
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

__dir__ = list_public(__name__)

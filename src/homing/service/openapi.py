"""OpenAPI descriptions of multipart requests, which routes parse themselves, in memory."""

from __future__ import annotations

from typing import Any

_FILE = {"type": "string", "format": "binary"}
PHOTOS = {"photo": {"type": "array", "items": _FILE, "minItems": 1}}
ONE_PHOTO = {"photo": _FILE}
TWO_PHOTOS = {"first": _FILE, "second": _FILE}


def multipart_body(files: dict[str, Any], **values: dict[str, Any]) -> dict[str, Any]:
    """A request body with required files and optional values."""
    schema = {"type": "object", "properties": {**files, **values}, "required": list(files)}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}

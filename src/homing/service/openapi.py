"""How multipart requests are described, which FastAPI cannot know: they are read by us, so that nothing is on disk."""

from __future__ import annotations

from typing import Any

_FILE = {"type": "string", "format": "binary"}
PHOTOS = {"photo": {"type": "array", "items": _FILE, "minItems": 1}}
ONE_PHOTO = {"photo": _FILE}
TWO_PHOTOS = {"first": _FILE, "second": _FILE}


def multipart_body(files: dict[str, Any], **values: dict[str, Any]) -> dict[str, Any]:
    """A body of these files, which must be there, and values, which may."""
    schema = {"type": "object", "properties": {**files, **values}, "required": list(files)}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}

"""Imported before any test: homing comes first, because it tells OpenMP how to wait before PyTorch loads it."""

import homing  # noqa: F401

"""Imports homing before any test, because it sets OpenMP's wait policy, which PyTorch reads when it loads OpenMP."""

import homing  # noqa: F401

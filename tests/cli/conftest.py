"""The browser fixture, for pages that commands write."""

from tests.service.chromium import chromium  # noqa: F401  # a fixture

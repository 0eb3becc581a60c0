"""Measuring: how many edited copies are found, and what it costs."""

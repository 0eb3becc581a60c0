"""Measuring: how many edited copies come home, and what it costs."""

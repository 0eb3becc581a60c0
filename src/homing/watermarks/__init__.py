"""Watermarks for comparison with activation: an identifier hidden in a photo."""

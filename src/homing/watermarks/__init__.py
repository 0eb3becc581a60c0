"""Watermarks, to compare activation with: an identifier hidden in a photo instead of a code in an index."""

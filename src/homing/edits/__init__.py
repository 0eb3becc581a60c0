"""Edits that copies of photos go through, by name: `parse("contrast-0.5")(image, seed=0)`."""

# Importing a module registers its edits.
from homing.edits import color, meme, overlay, pixel, screens, spatial  # noqa: F401
from homing.edits.disc import sample_edits
from homing.edits.paper import PAPER
from homing.edits.registry import KINDS, Edit, Kind, edit, parse

__all__ = ["KINDS", "PAPER", "Edit", "Kind", "edit", "parse", "sample_edits"]

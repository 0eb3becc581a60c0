"""The edits once more, batched and with a gradient: `TWINS["blur"](views, strength, generator)`."""

# Importing a module registers its twins.
from homing.edits.differentiable import colour, jpeg, palette, pixel, spatial, templates  # noqa: F401
from homing.edits.differentiable.mixture import Ranges, random_edits
from homing.edits.differentiable.views import TWINS, Twin, Views, twin

__all__ = ["TWINS", "Ranges", "Twin", "Views", "random_edits", "twin"]

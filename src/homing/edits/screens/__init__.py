"""Screenshot edit: the photo in the screen of an app on a phone or computer."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from homing.edits._registry import edit
from homing.edits._templates import draw_around
from homing.edits._views import Views
from homing.edits.screens import desktop, phone
from homing.edits.screens.canvas import pick

SCREENS = (
    phone.feed,
    phone.post,
    phone.chat,
    phone.viewer,
    phone.browser,
    desktop.article,
    desktop.network,
    desktop.window,
    desktop.gallery,
    desktop.message,
)
"""Layouts: functions that draw a random screen for a photo of a given ratio of width to height."""


@edit("spatial")
def screenshot(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Show the whole photo in the screen of an app, light or dark."""
    return pick(rng, SCREENS)(rng, image.width / image.height).finish(image)


@screenshot.differentiable
def _screenshot(views: Views, generator: torch.Generator) -> Views:
    return draw_around("screenshot", views, generator, samples=3)  # photos shrink to 0.3 of a screen's side

"""Edits that show a photo in a web page, or in the screen of an app on a phone or computer."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing.edits._registry import edit
from homing.edits._surroundings import Surroundings
from homing.edits._templates import draw_around
from homing.edits._views import Views
from homing.edits.screens import desktop, pages, phone
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
    return draw_around("screenshot", views, None, generator, samples=3)  # photos shrink to 0.3 of a screen's side


@edit("scene", bounds=(5, 70), whole=True)
def page(image: Image.Image, strength: int, rng: np.random.Generator, surroundings: Surroundings) -> Image.Image:
    """Show the photo on this percentage of a web page or of an app's screen, with texts and other pictures."""
    return pick(rng, pages.PAGES)(rng, image.width / image.height, strength / 100, surroundings).finish(image)


@page.differentiable
def _page(views: Views, strength: Tensor, generator: torch.Generator) -> Views:
    return draw_around("page", views, strength, generator, samples=3)

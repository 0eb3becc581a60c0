"""The fourteen edits of the paper's Table 1."""

from homing.edits.registry import Edit, parse

PAPER: tuple[Edit, ...] = tuple(
    parse(label)
    for label in (
        "identity",
        "contrast-0.5",
        "contrast-2.0",
        "brightness-0.5",
        "brightness-2.0",
        "hue-0.2",
        "blur-2.0",
        "jpeg-50",
        "rotation-25",
        "rotation-90",
        "crop-0.5",
        "resize-0.5",
        "meme",
        "random",
    )
)
"""In the order of the table's columns."""

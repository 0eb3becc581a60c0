"""Draw docs/images/wild.jpg: a photo in the thirteen edits of the set "wild".

python tools/draw_wild_edits.py PHOTO docs/images/wild.jpg
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from PIL import Image, ImageDraw, ImageFont, ImageOps

from homing.edits import WILD

COLUMNS, SIDE, LABEL = 5, 240, 22


def main(
    photo: Annotated[Path, typer.Argument(help="The photo.")], out: Annotated[Path, typer.Argument(help="The picture.")]
) -> None:
    """Draw the photo and its copies in a grid."""
    image = Image.open(photo).convert("RGB")
    copies = {"the photo": image, **{edit.label: edit(image, seed=3) for edit in WILD}}
    rows = -(-len(copies) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * SIDE, rows * (SIDE + LABEL)), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (label, copy) in enumerate(copies.items()):
        left, top = number % COLUMNS * SIDE, number // COLUMNS * (SIDE + LABEL)
        draw.text((left + 4, top + 2), label, fill="black", font=ImageFont.load_default(15))
        sheet.paste(ImageOps.contain(copy, (SIDE - 8, SIDE - 8)), (left + 4, top + LABEL))
    sheet.save(out, quality=85)


if __name__ == "__main__":
    typer.run(main)

"""homing compare: measure how much a released photo differs from its original."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from homing.cli._console import JsonFlag, console, print_json
from homing.errors import HomingError


def compare(
    original: Annotated[Path, typer.Argument(help="The original photo.")],
    released: Annotated[Path, typer.Argument(help="The released photo.")],
    out: Annotated[
        Path | None, typer.Option(help="Write a PNG file with both photos and their difference ×20.")
    ] = None,
    lpips: Annotated[
        bool, typer.Option("--lpips", help="Measure LPIPS as well. It needs homing[lpips] and the weights of AlexNet.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Measure PSNR, SSIM and the largest change of a pixel (L∞, of 255), and draw the difference.

    Examples:

        homing compare beach.jpg released/beach.jpg

        homing compare beach.jpg released/beach.jpg --out difference.png
    """
    from homing._io.files import prepare_output_file
    from homing.imaging import comparison, save_png
    from homing.perception import measure
    from homing.perception.lpips import load_lpips
    from homing.photo import Photo

    if out is not None and out.exists() and any(out.samefile(photo) for photo in (original, released)):
        raise HomingError(f"--out {out} is one of the photos and would be overwritten; choose another --out")
    if out is not None:
        prepare_output_file(out, ".png")
    before, after = Photo.load(original).pixels(), Photo.load(released).pixels()
    quality = measure(before, after)
    seen = {"lpips": load_lpips()(before, after)} if lpips else {}
    if out is not None:
        save_png(comparison(before, after), out)
    if json:
        print_json({**asdict(quality), **seen})
    else:
        learned = "".join(f", LPIPS {value:.4f}" for value in seen.values())
        console.print(f"{quality}{learned}" + (f". Picture: {out}" if out else ""), highlight=False)

"""Options: fields of dataclasses that commands offer, with one default, one explanation and one check of the value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from typing import Any, get_args, get_type_hints

from homing.errors import HomingError


@dataclass(frozen=True)
class Option:
    """How a setting is an option of a command, and which values it takes."""

    help: str
    _: KW_ONLY
    name: str = ""  # on the command line, if it is not that of the setting
    default_text: str = ""  # the default in words, where its value says less
    minimum: float | None = None
    maximum: float | None = None
    parser: Callable[[str], Any] | None = None  # reads the value, where its type does not
    metavar: str | None = None


def setting(option: Option, default: Any = MISSING) -> Any:
    """A field of a dataclass that is an option: `epochs: float = setting(Option("Passes over the photos."), 24.0)`."""
    return field(default=default, metadata={"option": option})


def options_of(settings: Any) -> dict[str, Option]:
    """The options of a dataclass, by the names of their fields."""
    return {each.name: each.metadata["option"] for each in fields(settings) if "option" in each.metadata}


def check_limits(settings: Any) -> None:
    """Refuse settings below their minimum or above their maximum, and fractions of what is counted."""
    hints = get_type_hints(type(settings))
    for name, option in options_of(settings).items():
        low, high, value = option.minimum, option.maximum, getattr(settings, name)
        if value is None or low is None or high is None:
            continue
        if not low <= value <= high:  # also refuses NaN
            raise HomingError(f"{option_name(name)} takes a value from {low:g} to {high:g}, got {_format(value)}")
        if int in (hints[name], *get_args(hints[name])) and value != int(value):
            raise HomingError(f"{option_name(name)} takes a whole number, got {value:g}")


def _format(number: float) -> str:
    # Very large integers cannot be converted to float.
    return f"{number:g}" if isinstance(number, float) or abs(number) < 10**300 else "a number of more than 300 digits"


def option_name(field: str) -> str:
    """The option of a field, as typed."""
    return "--" + field.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class ActivateOptions:
    """How photos are activated: the options of `homing activate` and `homing cluster activate`."""

    recipe: str = setting(Option("How photos are activated; list recipes with: homing recipes."), "homing")
    budget: str | None = setting(
        Option(
            "How far each pixel may change: jnd, jnd-printed, jnd-uniform or linf (the same bound everywhere).",
            default_text="the recipe's",
        ),
        None,
    )
    psnr: float | None = setting(
        Option("PSNR of the released file, in dB; a higher value changes the photo less.", default_text="43.8"), None
    )
    alpha: float | None = setting(
        Option("Strength instead of a PSNR. jnd, jnd-uniform: a factor, 3 in the paper. linf: the bound, of 255."),
        None,
    )
    format: str | None = setting(
        Option("Write jpeg, png, webp, tiff, avif, heic or bmp.", default_text="as the photo came"), None
    )
    graphics: bool = setting(Option("Activate graphics too, such as logos and screenshots of text."), False)

"""Options: fields of dataclasses that commands offer, with one default, one explanation and one check of the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from typing import Any, get_args, get_type_hints

from homing.errors import HomingError, UnknownNameError


@dataclass(frozen=True)
class Option:
    """How a setting is an option of a command, and which values it takes.

    A setting of several values is read from a list with commas if it has `read`; otherwise the option is repeatable.
    """

    help: str
    _: KW_ONLY
    name: str = ""  # on the command line, if it is not that of the setting
    argument: str = ""  # its name in the usage line, if it is an argument
    default_text: str = ""  # the default in words, where its value says less
    minimum: float | None = None
    maximum: float | None = None
    choices: Callable[[], Iterable[str]] | None = None
    kind: str = ""  # of the choices, such as recipe
    valid: Callable[[Any], bool] = lambda _: True
    read: Callable[[str], Any] | None = None  # reads one of several values, which commas separate
    takes: str = "names"  # what `read` takes
    sets: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # words that stand for several values
    parser: Callable[[str], Any] | None = None  # reads the value, where its type does not
    metavar: str | None = None

    def values(self, flag: str, text: str) -> list[Any]:
        """The values in a list with commas."""
        assert self.read is not None
        values: list[Any] = []
        for word in (each.strip() for each in text.split(",")):
            try:
                values += self.sets[word] if word in self.sets else [self.read(word)]
            except ValueError:
                raise self._refused(flag, word) from None
        return values

    def check(self, flag: str, value: Any) -> None:
        """Refuse a value that is not among the choices, or not within the limits."""
        if self.choices and value not in (known := list(self.choices())):
            raise UnknownNameError(self.kind, value, known)
        if not self.valid(value):
            raise self._refused(flag, value)
        low, high = self.minimum, self.maximum
        if (low is None or value >= low) and (high is None or value <= high):  # false for NaN
            return
        limits = f"of at least {low:g}" if high is None else f"from {low:g} to {high:g}"
        raise HomingError(f"{flag} takes a value {limits}, got {_format(value)}")

    def _refused(self, flag: str, value: object) -> HomingError:
        return HomingError(f"{flag} takes comma-separated {self.takes}, got {value!r}")


def setting(option: Option, default: Any = MISSING) -> Any:
    """A field of a dataclass that is an option: `epochs: float = setting(Option("Passes over the photos."), 24.0)`."""
    return field(default=default, metadata={"option": option})


def options_of(settings: Any) -> dict[str, Option]:
    """The options of a dataclass, by the names of their fields."""
    return {each.name: each.metadata["option"] for each in fields(settings) if "option" in each.metadata}


def check_options(settings: Any) -> None:
    """Refuse settings that their options do not take, and fractions of what is counted."""
    hints = get_type_hints(type(settings))
    for name, option in options_of(settings).items():
        flag, value = option.name or option_name(name), getattr(settings, name)
        if isinstance(value, (list, tuple)):
            for each in value:
                option.check(flag, each)
        elif value is not None:
            option.check(flag, value)
            if int in (hints[name], *get_args(hints[name])) and value % 1:
                raise HomingError(f"{flag} takes a whole number, got {value:g}")


def _format(number: float) -> str:
    # Very large integers cannot be converted to float.
    return f"{number:g}" if isinstance(number, float) or abs(number) < 10**300 else "a number of more than 300 digits"


def option_name(field: str) -> str:
    """The option of a field, as typed."""
    return "--" + field.replace("_", "-")

"""How commands are declared: groups, shared arguments, and options from the fields of dataclasses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from homing._options import Option, option_name, options_of

Function = TypeVar("Function", bound=Callable[..., Any])

CollectionPath = Annotated[
    str, typer.Argument(metavar="COLLECTION", help="The collection's folder, or its address: s3://bucket/photos.lance.")
]
PhotoPaths = Annotated[
    list[Path], typer.Argument(metavar="PHOTO_OR_FOLDER…", readable=False, help="Photos, or folders of photos.")
]
_SOURCES = typer.Argument(
    metavar="PHOTO_OR_FOLDER…", help="Photos, or folders of photos: paths, or addresses such as s3://bucket/photos."
)
PhotoSources = Annotated[list[str], _SOURCES]
OptionalPhotoSources = Annotated[list[str] | None, _SOURCES]


def id_or_path(text: str) -> int | str:
    """The id of a reference if the text is a number that Python reads, otherwise the text: a path."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= sys.int_info.default_max_str_digits
    return int(text) if is_number else text


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group whose help shows no type for flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_flag_types(super().get_params(ctx))


class App(typer.Typer):
    """A group of commands. A parameter of a command that is a dataclass becomes one option per field.

    The fields are made by `homing._options.setting`; the command gets the dataclass. Help shows the type of a value,
    and none for flags.
    """

    def __init__(self, cls: type[TyperGroup] = Group, **settings: Any) -> None:
        super().__init__(cls=cls, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a function as a command."""
        register = super().command(name, cls=_Command, **settings)

        def add(function: Function) -> Function:
            register(_with_options(function))
            return function

        return add


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with parameters for the options of each dataclass instead of the dataclass."""
    hints = get_type_hints(function, include_extras=True)
    dataclasses: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in dataclasses:
            parameters += _parameters(dataclasses[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))

    @wraps(function)
    def command(**values: Any) -> Any:
        for name, settings in dataclasses.items():
            options = options_of(settings)
            values[name] = settings(**{each: _value(each, options[each], values.pop(each)) for each in options})
        return function(**values)

    command.__dict__["__signature__"] = Signature(parameters)  # which typer reads
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _parameters(settings: Any) -> Iterator[Parameter]:
    """A parameter with a typer option for each field that is one."""
    options, hints = options_of(settings), get_type_hints(settings)
    for each in fields(settings):
        if (option := options.get(each.name)) is None:
            continue
        default, hint = ... if each.default is MISSING else each.default, hints[each.name]
        if isinstance(default, tuple) or option.read:
            default, hint = _text_of_several(option, default)
        declared: Any = typer.Argument(default, metavar=option.argument, readable=False, help=option.help)
        if not option.argument:
            declared = typer.Option(
                default,
                option.name or option_name(each.name),
                help=option.help,
                show_default=option.default_text or True,
                # With both limits the settings check themselves, in Python as on the command line.
                min=option.minimum if option.maximum is None and not option.read else None,
                parser=option.parser,
                metavar=option.metavar,
            )
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=declared, annotation=hint)


def _text_of_several(option: Option, default: Any) -> tuple[Any, Any]:
    """Default and type of an option of several values: a text with commas; without `read` it is repeatable."""
    if not option.read:
        return [], list[str]
    if default is None:
        return None, str | None
    return ",".join(str(getattr(each, "label", each)) for each in default), str


def _value(name: str, option: Option, given: Any) -> Any:
    """The value of a setting, as read from what was given."""
    if option.read and given is not None:
        return option.values(option.name or option_name(name), given)
    return given


def _hide_flag_types(params: list[Any]) -> list[Any]:
    """The parameters, where flags have an empty type instead of <bool>."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params

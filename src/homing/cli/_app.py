"""Groups and commands whose help shows the type of a value, and none for flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

Function = TypeVar("Function", bound=Callable[..., Any])


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_flag_types(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_flag_types(super().get_params(ctx))


class App(typer.Typer):
    """A group of commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a function as a command."""
        return super().command(name, cls=_Command, **settings)


def _hide_flag_types(params: list[Any]) -> list[Any]:
    """The parameters, where flags have an empty type instead of <bool>."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params

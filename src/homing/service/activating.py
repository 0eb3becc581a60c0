"""Uploads are activated, and what may be released of them is kept for who asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from homing import collection as library
from homing.activation import Recipe, recipe_named
from homing.errors import HomingError
from homing.photo import format_name, read_file
from homing.service.adding import drop_unless_source, failed, outcome_of
from homing.service.answers import Outcome
from homing.service.audit import Entry
from homing.service.keeping import shown_name
from homing.service.keys import Caller
from homing.service.state import Service
from homing.service.uploads import Upload

FIELDS = ("recipe", "psnr", "format")


@dataclass(frozen=True)
class Wish:
    """How photos are to be activated, and as what they are to be written."""

    recipe: Recipe
    format: str | None

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Wish:
        """What the fields of a form ask for; an empty one asks for nothing."""
        for name in values:
            if name not in FIELDS:
                raise HomingError(f"unknown field {name!a}; beside photo there are {', '.join(FIELDS)}")
        recipe = recipe_named(values.get("recipe") or "homing")
        if values.get("psnr"):
            try:
                budget = replace(recipe.budget, psnr=float(values["psnr"]), alpha=None)
            except ValueError:
                raise HomingError(f"psnr is a number of dB, got {values['psnr']!a}") from None
            recipe = replace(recipe, budget=budget)
        return cls(recipe, format_name(values["format"]) if values.get("format") else None)


@dataclass(frozen=True)
class Release:
    """What came of one photo: its reference, and the file that may be released of it, as it was written."""

    id: int
    outcome: library.Outcome
    data: bytes = field(repr=False)


def activate_now(service: Service, upload: Upload, wish: Wish, caller: Caller) -> Release:
    """Activate one photo, in the writer's thread. Its file and what is released of it are on disk by then."""
    catalogue = service.collection.folder.catalogue
    known = catalogue.find(upload.sha256)
    with service.keeping.held():
        out = service.keeping.room_for_release(upload)
        try:
            path = service.keeping.keep(upload)
            (outcome,) = service.collection.activate(path, out, recipe=wish.recipe, format=wish.format)
            # Now: whoever has the next turn may remove it, or write another in its place.
            data = read_file(outcome.released) if outcome.released is not None else b""
        finally:
            drop_unless_source(service, upload)
            service.keeping.tidy(out)
    number = catalogue.find(upload.sha256)
    if number is not None:
        entry = Entry(caller.name, "released", number, upload.sha256, upload.name)
        added = [replace(entry, action="added")] if known is None else []
        service.audit.write(*added, *([entry] if outcome.error is None else []))
    if outcome.error is not None:
        raise _without_source(service, upload, outcome.error)
    assert number is not None
    return Release(number, outcome, data)


def _without_source(service: Service, upload: Upload, error: HomingError) -> HomingError:
    """An error that may name the photo which the upload was released of: by its name, not by its folders."""
    catalogue = service.collection.folder.catalogue
    original = catalogue.find_released(upload.sha256)
    if original is None:
        return error
    source, _ = catalogue.describe(original)
    return type(error)(str(error).replace(source, shown_name(source)))


def activate_as_step(service: Service, wish: Wish, caller: Caller, uploads: Sequence[Upload]) -> list[Outcome]:
    """The same as one step of a job: what goes wrong with one photo stops no other."""
    return [_outcome(service, upload, wish, caller) for upload in uploads]


def _outcome(service: Service, upload: Upload, wish: Wish, caller: Caller) -> Outcome:
    try:
        return outcome_of(service, upload, activate_now(service, upload, wish, caller).outcome)
    except HomingError as error:
        return failed(service, upload, error)

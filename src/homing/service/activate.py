"""Activation of uploads; released files are stored in the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from homing import collection as library
from homing._io.paths import location
from homing.activation import Recipe, resolve_recipe
from homing.collection.uploads import display_name
from homing.errors import HomingError
from homing.photo import format_name, read_file
from homing.service.add import failed_outcome, to_photo_outcome
from homing.service.audit import AuditEntry
from homing.service.keys import Caller
from homing.service.schemas import PhotoOutcome
from homing.service.state import Service
from homing.service.uploads import Upload

OPTION_FIELDS = ("recipe", "psnr", "format", "graphics")
_FLAGS = {"": False, "false": False, "true": True}


@dataclass(frozen=True)
class ActivateOptions:
    """Options of an activation: recipe, file format, and whether graphics of few colors are activated."""

    recipe: Recipe
    format: str | None
    graphics: bool

    @classmethod
    def from_form(cls, values: Mapping[str, str]) -> ActivateOptions:
        """Parse form fields; empty fields are ignored."""
        for name in values:
            if name not in OPTION_FIELDS:
                raise HomingError(f"unknown field {name!a}; available: photo, {', '.join(OPTION_FIELDS)}")
        try:
            psnr = float(values["psnr"]) if values.get("psnr") else None
        except ValueError:
            raise HomingError(f"psnr must be a number of dB, got {values['psnr']!a}") from None
        recipe = resolve_recipe(values.get("recipe") or "homing", psnr=psnr)
        graphics = values.get("graphics", "")
        if graphics not in _FLAGS:
            raise HomingError(f"graphics must be true or false, got {graphics!a}")
        return cls(recipe, format_name(values["format"]) if values.get("format") else None, _FLAGS[graphics])


@dataclass(frozen=True)
class ActivationResult:
    """The outcome of one photo, the id of its reference, and the bytes of the file to release."""

    id: int
    outcome: library.Outcome
    data: bytes = field(repr=False)


def activate_upload(service: Service, upload: Upload, options: ActivateOptions, caller: Caller) -> ActivationResult:
    """Activate one photo, in the writer's thread. The photo and the released file are on disk when this returns."""
    catalog = service.collection.storage
    known = catalog.find(upload.sha256)
    with service.upload_store.lock():
        out = service.upload_store.make_release_folder(upload)
        try:
            path = service.upload_store.save(upload)
            (outcome,) = service.collection.activate(
                path, out, recipe=options.recipe, format=options.format, graphics=options.graphics
            )
            # Read now: later changes may remove or replace the file.
            data = read_file(location(outcome.released)) if outcome.released is not None else b""
        finally:
            service.upload_store.delete_unless_source(upload, catalog)
            service.upload_store.remove_if_empty(out)
    number = catalog.find(upload.sha256)
    if number is not None:
        entry = AuditEntry(caller.name, "released", number, upload.sha256, upload.name)
        added = [replace(entry, action="added")] if known is None else []
        service.audit.write(*added, *([entry] if outcome.error is None else []))
    if outcome.error is not None:
        raise _hide_source_folder(service, upload, outcome.error)
    assert number is not None
    return ActivationResult(number, outcome, data)


def _hide_source_folder(service: Service, upload: Upload, error: HomingError) -> HomingError:
    """Replace the path of the original photo in an error by its name."""
    catalog = service.collection.storage
    original = catalog.find_released(upload.sha256)
    if original is None:
        return error
    source, _ = catalog.source_and_state(original)
    return type(error)(str(error).replace(source, display_name(source)))


def activate_batch(
    service: Service, options: ActivateOptions, caller: Caller, uploads: Sequence[Upload]
) -> list[PhotoOutcome]:
    """Activate photos as one step of a job; photos that fail do not affect the others."""
    return [_activate_or_fail(service, upload, options, caller) for upload in uploads]


def _activate_or_fail(service: Service, upload: Upload, options: ActivateOptions, caller: Caller) -> PhotoOutcome:
    try:
        return to_photo_outcome(service, upload, activate_upload(service, upload, options, caller).outcome)
    except HomingError as error:
        return failed_outcome(service, upload, error)

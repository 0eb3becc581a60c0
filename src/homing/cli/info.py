"""homing info: the contents of a collection."""

from __future__ import annotations

from dataclasses import asdict

from homing._io.files import format_size
from homing.cli._console import CollectionPath, JsonFlag, print_json, print_key_values


def info(collection: CollectionPath, json: JsonFlag = False) -> None:
    """Show the contents of a collection: photos, codebook, network, size.

    Example:

        homing info holiday.homing
    """
    from homing.collection import Collection

    with Collection.open(collection) as opened:
        about = opened.info()
    if json:
        print_json(asdict(about) | {"passive": about.passive})
        return
    others = {
        "next codebook": about.next_codebook and f"{about.next_codebook}, when it is ready: homing migrate --switch",
        "previous codebook": about.previous_codebook
        and f"{about.previous_codebook}, until: homing migrate --delete-previous",
    }
    print_key_values(
        {
            "photos": f"{about.photos:,}: {about.activated:,} activated, {about.passive:,} passive, "
            f"{about.unchanged:,} released unchanged",
            "distractors": f"{about.distractors:,}",
            "codebook": f"{about.codebook} ({about.spec}), {about.fingerprint[:12]}",
            **{name: text for name, text in others.items() if text},
            "extractor": about.extractor,
            **({} if about.version is None else {"version": f"{about.version:,}"}),
            "on disk": format_size(about.bytes_on_disk),
        }
    )

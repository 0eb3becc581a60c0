"""homing info: what a collection holds."""

from __future__ import annotations

from dataclasses import asdict

from homing.cli._screen import AsJson, CollectionPath, print_facts, print_json


def info(collection: CollectionPath, json: AsJson = False) -> None:
    """Say what a collection holds.

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
        "previous codebook": about.previous_codebook and f"{about.previous_codebook}, until: homing migrate --forget",
    }
    print_facts(
        {
            "photos": f"{about.photos:,}: {about.activated:,} activated, {about.passive:,} passive, "
            f"{about.unchanged:,} released unchanged",
            "strangers": f"{about.background:,}",
            "codebook": f"{about.codebook} ({about.spec}), {about.fingerprint[:12]}",
            **{name: text for name, text in others.items() if text},
            "extractor": about.extractor,
            **({} if about.version is None else {"version": f"{about.version:,}"}),
            "on disk": f"{about.bytes_on_disk / 1e6:.1f} MB",
        }
    )

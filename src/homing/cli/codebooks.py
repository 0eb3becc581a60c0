"""homing codebooks: the bundled codebooks."""

from __future__ import annotations

from homing.cli._console import JsonFlag, print_rows


def codebooks(json: JsonFlag = False) -> None:
    """List the bundled codebooks. Train your own with: homing codebook train."""
    from homing.codebooks import available, load

    books = [load(name) for name in available()]
    print_rows(
        [
            {"name": each.name, "spec": each.spec, "extractor": each.extractor, "fingerprint": each.fingerprint}
            for each in books
        ],
        json,
    )

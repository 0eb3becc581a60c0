"""List the references of a collection in Lance page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from homing.collection.lance.catalog import LanceCatalog
from homing.collection.lance.table import row_ids_in
from homing.collection.references import Reference, ReferenceQuery, Release, folded, folded_name
from homing.indexes.lance import ids_of

_PAGE = 1_000


def list_references(catalog: LanceCatalog, query: ReferenceQuery) -> Iterator[Reference]:
    """Iterate over the references of a query in order of id."""
    catalog.refresh()
    # Load all ids, 8 bytes each, and sort them: Lance returns rows in file order.
    pieces = [ids_of(batch) for batch in catalog.references.batches(["_rowid"])]
    ids = np.sort(np.concatenate(pieces)) if pieces else np.empty(0, np.int64)
    if query.after is not None:
        ids = ids[ids > query.after]
    count = 0
    for start in range(0, len(ids), _PAGE):
        for reference in _page(catalog, ids[start : start + _PAGE].tolist(), query):
            yield reference
            count += 1
            if count == query.limit:
                return


def _page(catalog: LanceCatalog, ids: list[int], query: ReferenceQuery) -> Iterator[Reference]:
    table = catalog.references.rows(["_rowid", "sha256", "source", "added"], row_ids_in(ids))
    rows = dict(zip(ids_of(table).tolist(), table.select(["sha256", "source", "added"]).to_pylist(), strict=True))
    if query.name_contains:
        wanted = folded(query.name_contains)
        rows = {number: row for number, row in rows.items() if wanted in folded_name(row["source"])}
    hashes = [row["sha256"] for row in rows.values()]
    states, releases = catalog.log.states(hashes), _releases(catalog, hashes)
    for number, row in sorted(rows.items()):
        state = states.get(row["sha256"], "passive")
        if query.state in (None, state):
            yield Reference(
                id=number,
                photo=row["source"],
                state=state,
                sha256=row["sha256"],
                added=row["added"],
                releases=tuple(releases.get(row["sha256"], {}).values()),
            )


def _releases(catalog: LanceCatalog, hashes: list[str]) -> dict[str, dict[tuple[str, str], Release]]:
    """The written releases of photos by hash, each file once, latest first."""
    found: dict[str, dict[tuple[str, str], Release]] = {}
    rows: list[dict[str, Any]] = catalog.log.written_rows(hashes)
    for row in reversed(rows):
        release = Release(
            path=row["path"],
            state=row["state"],
            sha256=row["sha256"],
            psnr=row["psnr"],
            ssim=row["ssim"],
            linf=row["linf"],
            reason=row["reason"],
            time=row["changed"],
        )
        found.setdefault(row["photo"], {}).setdefault((release.path, release.sha256), release)
    return found

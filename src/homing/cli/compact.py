"""homing compact: index new photos and merge small files of a collection in Lance."""

from __future__ import annotations

from typing import Annotated

import typer

from homing.cli._console import CollectionPath, console
from homing.errors import HomingError


def compact(
    collection: CollectionPath,
    keep_days: Annotated[
        float | None,
        typer.Option(min=0, max=36_500, help="Delete versions older than this many days.", show_default="keep all"),
    ] = None,
) -> None:
    """Index new photos and merge small files of a collection in Lance. Searches can run meanwhile.

    Large jobs do it themselves.

    Examples:

        homing compact s3://bucket/photos.lance

        homing compact s3://bucket/photos.lance --keep-days 30
    """
    from datetime import timedelta

    from homing.collection import Collection
    from homing.collection.lance.collection import LanceCollection

    with Collection.open(collection) as opened:
        if not isinstance(opened, LanceCollection):
            raise HomingError(f"{collection} is not stored in Lance; only such collections can be compacted")
        opened.compact(older_than=None if keep_days is None else timedelta(days=keep_days))
        versions = opened.versions()
    console.print(
        f"Version {versions[-1].number:,} of {collection}: {versions[-1].photos:,} photos, all indexed;"
        f" {len(versions):,} {'version is' if len(versions) == 1 else 'versions are'} kept.",
        highlight=False,
    )

"""homing init, list, info, check, compact, export and import: one collection as a whole."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import timedelta
from itertools import islice
from typing import Annotated, Literal

import typer

import homing
from homing._io.files import format_size
from homing.cli._app import CollectionPath
from homing.cli._console import JsonFlag, console, one_line, print_json, print_key_values


def init(
    collection: CollectionPath,
    codebook: Annotated[str, typer.Option(help="The name of a bundled codebook, or a file.")] = "homing-1",
    with_distractors: Annotated[
        bool,
        typer.Option(
            "--with-distractors",
            help="Include the codes of photos of COCO train2017 as distractors, for trials (118,287 for homing-1).",
        ),
    ] = False,
) -> None:
    """Make an empty collection.

    Examples:

        homing init holiday.homing

        homing init trial.homing --with-distractors
    """
    with homing.Collection.create(collection, codebook=codebook, with_distractors=with_distractors) as made:
        about = made.info()
    distractors = f" among {about.distractors:,} distractors" if about.distractors else ""
    console.print(f"Made {collection}: codebook {about.codebook} ({about.spec}){distractors}.")


def list_references(
    collection: CollectionPath,
    state: Annotated[
        Literal["passive", "activated", "unchanged"] | None,
        typer.Option(help="List only references in this state.", show_default="all"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="List only references whose file name contains this text.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="List at most this many references.", show_default="all")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(metavar="ID", min=0, help="List references after this id, to continue an earlier list."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List the references of a collection, in the order of their ids.

    --json adds the hash and the released files of each reference, with their quality.

    Examples:

        homing list holiday.homing

        homing list holiday.homing --state passive --name beach

        homing list holiday.homing --limit 100 --after 1200 --json
    """
    limit = limit and min(limit, sys.maxsize - 1)
    with homing.Collection.open(collection) as opened:
        # One more than asked for shows whether there is a next page.
        found = opened.references(state=state, name_contains=name, after=after, limit=limit and limit + 1)
        references = islice(found, limit)
        if json:
            print_json([asdict(reference) for reference in references])
            return
        row = "{:>9}  {:9}  {:16}  {}".format
        console.print(one_line(row("id", "state", "added (UTC)", "photo"), "bold"), soft_wrap=True)
        count, last = 0, after
        for reference in references:  # printed one by one: a table of a million rows would wait for the last
            added = f"{reference.added:%Y-%m-%d %H:%M}"
            line = row(reference.id, reference.state, added, reference.photo)
            console.print(one_line(line), soft_wrap=True)
            count, last = count + 1, reference.id
        more = "" if next(found, None) is None else f" The next page: --after {last}"
    console.print(f"{count:,} {'reference' if count == 1 else 'references'}.{more}")


def info(collection: CollectionPath, json: JsonFlag = False) -> None:
    """Show the contents of a collection: photos, codebook, network, size.

    Example:

        homing info holiday.homing
    """
    with homing.Collection.open(collection) as opened:
        about = opened.info()
    if json:
        print_json(asdict(about) | {"passive": about.passive})
        return
    facts: dict[str, object] = {
        "photos": f"{about.photos:,}: {about.activated:,} activated, {about.passive:,} passive, "
        f"{about.unchanged:,} released unchanged",
        "distractors": f"{about.distractors:,}",
        "codebook": f"{about.codebook} ({about.spec}), {about.fingerprint[:12]}",
    }
    if about.next_codebook:
        facts["next codebook"] = f"{about.next_codebook}, when it is ready: homing migrate --switch"
    if about.previous_codebook:
        facts["previous codebook"] = f"{about.previous_codebook}, until: homing migrate --delete-previous"
    facts["extractor"] = about.extractor
    if about.version is not None:
        facts["version"] = f"{about.version:,}"
    facts["on disk"] = format_size(about.bytes_on_disk)
    print_key_values(facts)


def check(
    collection: CollectionPath,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired without loss. No reference is deleted.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Check a collection: catalog, codes, descriptors, codebook, index, and released files by their hashes.

    The exit code is 0 if no problem is left, else 1.

    Examples:

        homing check holiday.homing

        homing check holiday.homing --repair
    """
    findings = homing.collection.check(collection, repair=repair)
    left = sum(not finding.repaired for finding in findings)
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            word, style = ("repaired", "green") if finding.repaired else ("found", "red")
            console.print(one_line(f"{word:8} {finding}", style), soft_wrap=True)
        counts = {"repaired": len(findings) - left, "not repaired": left}
        summary = ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)
        console.print(f"{summary or 'No problems found'}.")
    raise typer.Exit(int(left > 0))


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
    with homing.Collection.open(collection) as opened:
        opened.compact(older_than=None if keep_days is None else timedelta(days=keep_days))
        versions = opened.versions()
    console.print(
        f"Version {versions[-1].number:,} of {collection}: {versions[-1].photos:,} photos, all indexed;"
        f" {len(versions):,} {'version is' if len(versions) == 1 else 'versions are'} kept."
    )


def export(
    collection: CollectionPath,
    out: Annotated[str, typer.Option(help="The folder to write; it must not exist.")],
    format: Annotated[
        str,
        typer.Option(
            help="parquet: references, codes, descriptors and releases, for homing import. faiss: an index for FAISS, "
            "and ids. arrays: the quantizer for NumPy."
        ),
    ] = "parquet",
    json: JsonFlag = False,
) -> None:
    """Write a collection in a format that other software reads. A README.md in the folder says how.

    Examples:

        homing export holiday.homing --out holiday-parquet

        homing export holiday.homing --out holiday-faiss --format faiss
    """
    with homing.Collection.open(collection) as opened:
        done = opened.export(out, format=format)
    if json:
        print_json(asdict(done))
    else:
        console.print(f"Exported {done.photos:,} photos to {out}: {', '.join(done.files)}.")


def import_(
    collection: CollectionPath,
    export: Annotated[
        str, typer.Argument(metavar="EXPORT_FOLDER", help="A folder that homing export wrote as Parquet.")
    ],
) -> None:
    """Make a new collection from a Parquet export. Its search results are those of the exported one.

    Example:

        homing import again.homing holiday-parquet
    """
    with homing.Collection.from_export(collection, export) as made:
        about = made.info()
    console.print(f"Made {collection}: {about.photos:,} photos, codebook {about.codebook}.")

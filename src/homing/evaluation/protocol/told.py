"""What every bench says: what it measured on, and what its searches found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from homing.evaluation.protocol.references import Nearest, Probes
from homing.evaluation.protocol.setting import Subject

INTERVALS = "95 %: a bootstrap over photos (1,000 rounds, seed 0); it has no width where all fare alike"
SEARCH_HEADINGS = ["codebook", "recipe", "probes", "photo", "edit", "rank", "found", "distance", "home"]


def setting_line(subject: Subject) -> str:
    """In one sentence: how many photos, among what."""
    photos, strangers = len(subject.originals), len(subject.strangers.descriptors)
    return (
        f"{photos:,} photos among {photos + strangers:,} references, {strangers:,} of them strangers, "
        f"from {subject.strangers.photos:,} distinct photos."
    )


def numbers(
    subjects: Sequence[Subject],
    *,
    rows: Sequence[Mapping[str, object]],
    settings: Mapping[str, object],
    seconds: float,
    failures: Sequence[str] = (),
) -> dict[str, object]:
    """The document of a bench of these subjects; `failures` are those that are no subject's own."""
    first = subjects[0]
    background = {"photos": first.strangers.photos, "strangers": len(first.strangers.descriptors)}
    lines = [*(line for subject in subjects for line in subject.failures), *failures]
    return {
        "rows": rows,
        "settings": {"photos": len(first.originals), "background": background, **settings},
        "codebooks": {
            subject.codebook.name: {
                "fingerprint": subject.codebook.fingerprint,
                "extractor_fingerprint": subject.codebook.extractor_fingerprint,
            }
            for subject in subjects
        },
        "seconds": round(seconds, 1),
        "failures": list(dict.fromkeys(lines)),
    }


def probed(probes: Probes, cells: bool) -> str:
    """The number of probes in a table; an index without cells has none."""
    return str(probes) if cells or probes == "exact" else "–"


def searched(probes: Probes, cells: bool) -> str:
    """The number of probes in words."""
    if probes == "exact":
        return "exact"
    if not cells:
        return "no cells"
    return "1 probe" if probes == 1 else f"{probes} probes"


def numbered(name: str, number: int) -> str:
    """The name of the first, second, … figure of its kind."""
    return name if number == 1 else f"{name}-{number}"


def search_lines(
    subject: Subject,
    recipe: str,
    probes: Probes | str,
    sources: Sequence[str],
    labels: Sequence[str],
    found: Nearest,
    ranks: np.ndarray,
) -> Iterator[list[object]]:
    """Under the headings above, a line for each search for P files edited in E ways; ranks (P, E)."""
    names = [original.source for original in subject.originals]
    asked = [(source, label) for source in sources for label in labels]
    for query, (pair, rank) in enumerate(zip(asked, ranks.ravel().tolist(), strict=True)):
        place = "" if rank < 0 else rank + 1
        yield [subject.codebook.name, recipe, probes, *pair, place, *answer(found, query, names), int(rank == 0)]


def answer(found: Nearest, query: int, names: Sequence[str]) -> list[str]:
    """What is nearest, and how far; no name where it is a stranger, neither where nothing was found at all."""
    number = int(found.ids[query, 0])
    name = names[number] if 0 <= number < len(names) else ""
    return [name, "" if number < 0 else f"{found.distances[query, 0]:.5f}"]

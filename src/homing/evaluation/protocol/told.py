"""What every bench says about what it measured on."""

from __future__ import annotations

from collections.abc import Iterable

from homing.evaluation.protocol.references import Probes
from homing.evaluation.protocol.setting import Subject


def setting_line(subject: Subject) -> str:
    """In one sentence: how many photos, among what."""
    photos, strangers = len(subject.originals), len(subject.strangers.descriptors)
    return (
        f"{photos:,} photos among {photos + strangers:,} references, {strangers:,} of them strangers, "
        f"from {subject.strangers.photos:,} distinct photos."
    )


def background_of(subject: Subject) -> dict[str, int]:
    """The same of the strangers, for machines."""
    return {"photos": subject.strangers.photos, "strangers": len(subject.strangers.descriptors)}


def codebooks_of(subjects: Iterable[Subject]) -> dict[str, dict[str, str]]:
    """The hashes of what was measured, by the codebook's name."""
    return {
        subject.codebook.name: {
            "fingerprint": subject.codebook.fingerprint,
            "extractor_fingerprint": subject.codebook.extractor_fingerprint,
        }
        for subject in subjects
    }


def searched(probes: Probes) -> str:
    """The number of probes in words."""
    if probes == "exact":
        return "exact"
    return "1 probe" if probes == 1 else f"{probes} probes"

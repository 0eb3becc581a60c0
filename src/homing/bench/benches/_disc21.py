"""DISC21, the dataset of the Image Similarity Challenge 2021, in its downloaded layout."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from homing._io.files import report_write_errors
from homing.errors import HomingError
from homing.photo import LocalPhoto, find_photos

# Names in the download, in the authors' layout, and in the challenge's repository; the first one found is read.
GROUND_TRUTHS = (
    "dev_queries_groundtruth.csv",
    "dev_ground_truth.csv",
    "list_files/dev_ground_truth.csv",
    "groundtruth_matches.csv",
)
_REFERENCES, _TRAIN = ("references", "refs"), ("train",)
_HEADINGS = ["query_id", "reference_id"]


@dataclass(frozen=True)
class Disc21:
    """The photos of the paper's protocol: each is in one of these lists.

    `photos` are references that the ground truth names, `others` the rest of the references. `train_photos` are those
    of `train/` that the codebook is trained on; `negatives` are its last photos: neither trained on nor references.
    """

    photos: list[LocalPhoto]
    others: list[LocalPhoto]
    train_photos: list[LocalPhoto]
    negatives: list[LocalPhoto]


def read_disc21(
    root: Path, *, positives: int, negatives: int, limit_references: int | None, limit_train: int | None
) -> Disc21:
    """Find the photos in the folder that DISC21 was downloaded into.

    References are in `references/` or in the downloaded parts, `refs_50k_0/` etc.; the others in `train/` or in
    `train_50k_0/` etc. The limits apply to references that are not searched for, and to training photos.
    """
    references, train = _photos(root, _REFERENCES), _photos(root, _TRAIN)
    truth = _ground_truth(root)
    named = sorted(set(_reference_names(truth)))[:positives]
    if not named:
        raise HomingError(
            f"{truth} names no reference; expected lines of a query and its reference, as in Q00001,R00002"
        )
    if missing := [name for name in named if name not in references]:
        raise HomingError(
            f"{truth} names {missing[0]}, which is not among the references in {root}; {len(missing):,} of "
            f"{len(named):,} are missing: download the rest, or search for fewer with --positives"
        )
    chosen = set(named)
    others = [photo for name, photo in references.items() if name not in chosen][:limit_references]
    if not others:
        raise HomingError(f"all {len(named):,} references in {root} are searched for; give fewer --positives")
    if len(train) <= negatives:
        raise HomingError(
            f"the {len(train):,} photos in train/ must be more than the {negatives:,} negatives among them: "
            "the codebook is trained on the others; give fewer --negatives"
        )
    listed = list(train.values())
    return Disc21([references[name] for name in named], others, listed[:-negatives][:limit_train], listed[-negatives:])


def photo_folders(root: Path) -> list[Path]:
    """All folders of photos."""
    return [*_folders(root, _REFERENCES), *_folders(root, _TRAIN)]


def link_photos(photos: Sequence[LocalPhoto], folder: Path) -> Path:
    """A folder of links to exactly these photos."""
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if old.is_symlink():
                old.unlink()
        for photo in photos:
            (folder / photo.path.name).symlink_to(photo.path.absolute())
    return folder


def _photos(root: Path, names: Sequence[str]) -> dict[str, LocalPhoto]:
    """The photos in the folders of these names, by file stem, in order."""
    found = _folders(root, names)
    if not found:
        raise HomingError(f"{root} is not DISC21: it has no folder {names[0]}/; give the folder it was downloaded into")
    return {photo.path.stem: photo for photo in sorted(find_photos(found), key=lambda photo: photo.path.stem)}


def _folders(root: Path, names: Sequence[str]) -> list[Path]:
    try:
        inside = sorted(path for path in root.iterdir() if path.is_dir())
    except OSError as error:
        raise HomingError(f"cannot read the folder {root}: {error.strerror}") from error
    return [path for path in inside if path.name in names or path.name.startswith(tuple(f"{name}_" for name in names))]


def _ground_truth(root: Path) -> Path:
    for name in GROUND_TRUTHS:
        if (root / name).is_file():
            return root / name
    raise HomingError(
        f"{root} has no ground truth; expected {GROUND_TRUTHS[0]} or {GROUND_TRUTHS[1]} beside references/"
    )


def _reference_names(truth: Path) -> Iterator[str]:
    """The references in a ground truth: lines of a query and its reference; negative queries have no reference."""
    try:
        with truth.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if len(row) != 2 or not row[0].strip():
                    raise HomingError(f"{truth}, line {number}: expected query,reference, got '{','.join(row)}'")
                if row[1].strip() and row != _HEADINGS:
                    yield Path(row[1].strip()).stem
    except OSError as error:
        raise HomingError(f"cannot read {truth}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise HomingError(f"{truth} is not a CSV file: {error}") from error

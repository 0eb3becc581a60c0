"""An own network and an own FAISS index: photos are activated for both, and found more often in the index as it is.

    python examples/own_network_and_faiss.py

You run a descriptor network and a FAISS index that you trained without homing. The network becomes an extractor and the
trained index becomes a codebook; neither is changed. Copies of photos that are activated for them are found more often
by your own search, with the same index and the same number of probes.

To run offline within a minute, the network here is a small ResNet of timm with random weights, and the index is trained
on crops of a few photos of scikit-image. Put your network into `build_network`, your index into `train_index` and your
photos into `PHOTOS`. Needs: pip install -e '.[demo]'.
"""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path
from statistics import fmean

import faiss
import numpy as np
import timm
import torch
from PIL import Image
from torch import Tensor, nn

import homing
from homing.edits import parse

PHOTOS = ["astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "camera.png", "coins.png"]
TRAINING_PHOTOS = ["hubble_deep_field.jpg", "ihc.png", "retina.jpg", "motorcycle_left.png", "brick.png", "grass.png"]
CROPS = 1_200  # to train the index on
# Mild edits: random weights are not robust against stronger ones.
EDITS = ["jpeg-30", "blur-2.0", "resize-0.5", "crop-0.9", "contrast-1.2", "hue-0.05"]
SIZE = 96  # pixels: the side of the network's input


class Network(nn.Module):
    """The first stages of a ResNet-18, averaged over a 4 × 4 grid, each feature scaled to mean 0 and deviation 1."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = timm.create_model("resnet18", pretrained=False, features_only=True, out_indices=(1,))
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.norm = nn.BatchNorm1d(64 * 4 * 4, affine=False, momentum=None)

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) normalized images to (B, 1024) features; homing scales these to unit norm."""
        (features,) = self.backbone(images)
        return self.norm(self.pool(features).flatten(1))


def build_network(crops: Tensor) -> homing.NetworkExtractor:
    """Your network. Here: random weights, and a last layer with the statistics of the crops."""
    torch.manual_seed(0)
    network = Network().eval()
    network.norm.train()
    with torch.no_grad():
        network((crops - 0.5) / 0.5)
    # An extractor is any nn.Module, with the size and the normalization of its input.
    return homing.NetworkExtractor(network, name="my-network", size=SIZE, mean=(0.5,) * 3, std=(0.5,) * 3, device="cpu")


def train_index(descriptors: np.ndarray) -> faiss.Index:
    """Your index, trained elsewhere: 16 cells, 16 bytes per photo."""
    index = faiss.index_factory(descriptors.shape[1], "IVF16,PQ32x4")
    index.train(descriptors)
    return index


def load(name: str) -> Image.Image:
    """A photo of scikit-image, at most 320 pixels a side."""
    with files("skimage.data").joinpath(name).open("rb") as file:
        photo = Image.open(file).convert("RGB")
    photo.thumbnail((320, 320))
    return photo


def to_tensor(image: Image.Image) -> Tensor:
    """(3, H, W) in [0, 1]."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255


def random_crops(photos: list[Image.Image], count: int) -> Tensor:
    """(N, 3, SIZE, SIZE) in [0, 1]."""
    rng = np.random.default_rng(0)
    crops = []
    for number in range(count):
        photo = photos[number % len(photos)]
        side = int(rng.integers(SIZE, min(photo.size) + 1))
        left, top = int(rng.integers(photo.width - side + 1)), int(rng.integers(photo.height - side + 1))
        crops.append(to_tensor(photo.crop((left, top, left + side, top + side)).resize((SIZE, SIZE))))
    return torch.stack(crops)


def recall(index: faiss.Index, extractor: homing.Extractor, photos: list[Image.Image], first_id: int) -> float:
    """The share of edited copies whose nearest vector in your index is that of their original; plain FAISS."""
    found = []
    for number, photo in enumerate(photos):
        copies = [parse(edit)(photo, number) for edit in EDITS]
        _, ids = index.search(homing.describe(copies, extractor).numpy(), 1)
        found += (ids[:, 0] == first_id + number).tolist()
    return fmean(found)


def main() -> None:
    """Train, activate, search and print."""
    # Before homing: a network, and an index that is trained and filled.
    crops = random_crops([load(name) for name in TRAINING_PHOTOS], CROPS)
    extractor = build_network(crops)
    known = homing.describe(crops, extractor)
    index = train_index(known.numpy())
    photos = {Path(name).with_suffix(".png").name: load(name) for name in PHOTOS}
    index.add(known.numpy())  # other photos in the index, the distractors
    index.add(homing.describe(list(photos.values()), extractor).numpy())
    index.nprobe = 1

    # With homing: the trained index is a codebook. False-match probabilities need descriptors of unrelated photos;
    # give 1,000 or more photos of yours instead of these crops.
    codebook = homing.Codebook.from_faiss(index, extractor=extractor, name="my-index", descriptors=known)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "own.homing"), Path(folder, "released")
        with homing.Collection.create(path, codebook=codebook, extractor=extractor) as collection:
            outcomes = {Path(outcome.photo).name: outcome for outcome in collection.activate(photos, out)}
            published = [Image.open(outcomes[name].released).convert("RGB") for name in photos]
            # The collection searches, too, and says how likely a match is false.
            result = collection.search(parse("jpeg-50")(published[0], 0), k=1)

    # Your index holds the vectors of the originals, as before: nothing was added or changed.
    passive = recall(index, extractor, list(photos.values()), len(known))
    activated = recall(index, extractor, published, len(known))
    print(
        f"{codebook.spec}: {index.ntotal:,} vectors, {index.nprobe} probe, {len(EDITS)} edits of {len(photos)} photos"
    )
    print(f"recall of edited copies  passive {passive:.2f}  activated {activated:.2f}")
    print(f"PSNR of the activated files: {fmean(outcome.psnr for outcome in outcomes.values()):.1f} dB")
    print(f"a JPEG copy of {next(iter(photos))}: {result.verdict}")


if __name__ == "__main__":
    main()

"""What of a head is brain: deepbet's network, on volumes of 96 × 96 × 96 voxels.

    pip install --no-deps deepbet nilearn nibabel && pip install localsmooth
    python examples/gallery/brain_extraction.py
    localsmooth certify examples/gallery/brain_extraction.toml --out runs/gallery/brain_extraction/run

This file makes the input and has the module that the TOML file names: the network with the package's normalisation.
There is no scan of a head in these packages. The input is a phantom: the mean of 152 brains (MNI ICBM152, as nilearn
brings it) in layers of fluid, bone and scalp. Nothing is downloaded.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import nibabel
import numpy as np
import torch
from jaxtyping import Float
from scipy import ndimage
from torch import nn

SIDE = 96  # voxels
SIZE = 2.1  # mm, of a voxel
TEMPLATE = "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
FOLDER = Path(__file__).parents[2] / "runs" / "gallery" / "brain_extraction"


def installed(package: str) -> Path:
    """Where a package lies, found without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This example needs pip install --no-deps deepbet nilearn nibabel")
    return Path(spec.submodule_search_locations[0])


class Extractor(nn.Module):
    """The package's first stage, which finds the brain in all of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.network = torch.jit.load(installed("deepbet").parent / "data" / "models" / "bbox_model.pt", "cpu")

    def forward(self, volumes: Float[torch.Tensor, "batch 1 x y z"]) -> Float[torch.Tensor, "batch 2 x y z"]:
        """Probabilities of everything else and of brain, after the package's normalisation of each volume."""
        values = volumes.flatten(1)
        low, high = values.quantile(torch.tensor([0.005, 0.995]), dim=1)[..., None]
        values = ((values - low) / (high - low)).clamp(0, 1)
        values = (values - values.mean(1, keepdim=True)) / values.std(1, keepdim=True)
        return self.network((0.226 * values + 0.449).view_as(volumes))


def network() -> Extractor:
    """What the TOML file names."""
    return Extractor().eval()


def phantom(stretch: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """A head, the brain stretched along its axes, in grey levels of 8 bits; and which voxels are brain."""
    image = nibabel.load(installed("nilearn") / "datasets" / "data" / TEMPLATE)
    brain = nibabel.as_closest_canonical(image).get_fdata() / 255
    scale = SIZE / np.array(stretch)  # template voxels of 1 mm to one of ours
    centre = np.array(ndimage.center_of_mass(brain > 0)) - scale * (SIDE - 1) / 2
    brain = ndimage.affine_transform(ndimage.gaussian_filter(brain, 0.8), np.diag(scale), centre, (SIDE,) * 3, order=1)
    inside = ndimage.binary_fill_holes(brain > 0.15)
    to = ndimage.distance_transform_edt(~inside) * SIZE  # mm outside the brain
    head = np.select([inside, to < 5, to < 11, to < 18], [brain, 0.12, 0.05, 0.75], 0.0)
    head = ndimage.gaussian_filter(head, 0.5).clip(0, 1)
    return (np.rint(255 * head) / 255).astype(np.float32), inside.astype(np.int64)


def main() -> None:
    """Write the volumes and their labels."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    heads = [phantom((0.95, 1.0, 1.03)), phantom((1.0, 1.0, 1.0))]
    volumes, labels = (np.stack(each) for each in zip(*heads, strict=True))
    np.save(FOLDER / "volumes.npy", volumes[:, None])
    np.save(FOLDER / "labels.npy", labels)
    with torch.inference_mode():
        found = network()(torch.from_numpy(volumes[:, None])).argmax(1).numpy()
    for one, label in zip(found, labels, strict=True):
        overlap = (one & label).sum() / (one | label).sum()
        print(f"{label.mean():.1%} of the voxels are brain, IoU without noise {overlap:.3f}")


if __name__ == "__main__":
    main()

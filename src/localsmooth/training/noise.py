"""Noise for training that is, draw for draw, the noise of the certificate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import nn
from torch.utils.checkpoint import checkpoint

from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, LayoutRecipe
from localsmooth.models import level_channel, output_tensor
from localsmooth.noise import Noise, Randomness
from localsmooth.sampling import Region
from localsmooth.training.losses import IGNORED, Loss

__all__ = ["AllGroups", "Augmentation", "GroupNoise", "NoisyBatch", "OneGroup"]

_NOISE, _GROUPS, _VALIDATION = 101, 102, 103  # first entries of the keys of streams, apart from those of sampling


class GroupNoise:
    """Draws from the smoothing distribution of one output group around every image of a batch.

    It reads the layout, its views and the noise exactly as the sampler does, so that a network is trained on the
    distributions under which it will be certified.

    Parameters
    ----------
    layout
        The layout that will be certified, or a recipe such as `GridLayout` that makes one for each image size.
    noise
        The family of smoothing distributions.
    bounds
        Declared input bounds of the model, as for the certificate; needed where the noise is clamped.
    seed
        Seed of all draws.
    told
        Whether the network is told the noise: its inputs then have one channel more, as those of a model with
        `told=True`. `widened` makes such a network of one that is not.

    Raises
    ------
    InvalidInputError
        If the seed is negative.
    """

    def __init__(
        self,
        layout: Layout | LayoutRecipe,
        noise: Noise,
        *,
        bounds: tuple[float, float] | None = None,
        seed: int = 0,
        told: bool = False,
    ) -> None:
        if seed < 0:
            raise InvalidInputError("seed", f"got {seed}", "Pass a non-negative integer")
        self.noise = noise
        self.bounds = bounds
        self.seed = seed
        self.told = told
        self._layout = layout
        self._made: dict[tuple[tuple[int, ...], tuple[int, ...], str], tuple[Layout, list[Region]]] = {}

    def layout(self, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> Layout:
        """The layout for images of one shape (channels included) and their label maps.

        Raises
        ------
        InvalidInputError
            If the layout does not fit the shapes, or its levels do not fit the noise.
        """
        return self._prepared(input_shape, output_shape)[0]

    def _prepared(
        self, input_shape: tuple[int, ...], output_shape: tuple[int, ...], device: torch.device | str = "cpu"
    ) -> tuple[Layout, list[Region]]:
        key = input_shape, output_shape, str(device)
        if key not in self._made:
            recipe = self._layout
            made = recipe if isinstance(recipe, Layout) else recipe.layout(input_shape, output_shape)
            inputs = made.inputs.shape
            if made.outputs.shape != output_shape or input_shape[len(input_shape) - len(inputs) :] != inputs:
                raise InvalidInputError(
                    "layout",
                    f"it is for inputs of shape {inputs} and outputs of shape {made.outputs.shape}, the batch has "
                    f"images of shape {input_shape} and labels of shape {output_shape}",
                    "Make the layout for these shapes, or pass a recipe",
                )
            self.noise.validate(made.levels)
            self._made[key] = made, [Region.of(made, group, device) for group in range(made.outputs.count)]
        return self._made[key]

    def regions(self, images: torch.Tensor, labels: torch.Tensor) -> list[Region]:
        """What each output group sees of images of this shape, and where its outputs lie."""
        return self._prepared(tuple(images.shape[1:]), tuple(labels.shape[1:]), images.device)[1]

    def draw(
        self, images: Float[torch.Tensor, "batch *item"], region: Region, randomness: Randomness
    ) -> Float[torch.Tensor, "batch *crop"]:
        """One noisy copy of every image from the distribution of one output group, cropped to what the group sees.

        With the channel of levels behind the others for networks that are told the noise.
        """
        crop = region.of_item(images).contiguous()
        hidden = 0.0 if self.bounds is None else (self.bounds[0] + self.bounds[1]) / 2
        # The batch is drawn as one large item: levels belong to the trailing axes, whatever stands before them.
        prepared = self.noise.prepare(crop, region.level_map, self.bounds, hidden)
        noisy = torch.empty((1, *crop.shape), dtype=crop.dtype, device=crop.device)
        prepared.draw(noisy, randomness)
        if not self.told:
            return noisy[0]
        channel = torch.from_numpy(level_channel(region.level_map, tuple(crop.shape[2:]), self.bounds).copy())
        return torch.cat([noisy[0], channel.to(crop).expand(len(crop), *channel.shape)], dim=1)

    def stream(self, purpose: int, step: int, part: int, device: torch.device) -> Randomness:
        """The random stream of one part of one step.

        Raises
        ------
        InvalidInputError
            If the step is negative.
        """
        if step < 0:
            raise InvalidInputError("step", f"got {step}", "Count training steps from 0")
        return Randomness(self.seed, (purpose, step, part), device)

    def generator(self, purpose: int, step: int) -> np.random.Generator:
        """A generator for choices that are made on the CPU."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(purpose, step)))

    def stitched(
        self,
        network: nn.Module,
        images: Float[torch.Tensor, "batch *item"],
        labels: Shaped[torch.Tensor, "batch *outputs"],
        step: int,
        *,
        purpose: int = _NOISE,
        call: Callable[[nn.Module, torch.Tensor], torch.Tensor] | None = None,
    ) -> Float[torch.Tensor, "batch classes *outputs"]:
        """Scores of every output, each predicted from a draw of its own group's distribution.

        Parameters
        ----------
        network
            Returns scores (batch, classes, *outputs).
        images, labels
            A batch; only the shape of the labels is read.
        step
            Which draw; the same step gives the same noise.
        purpose
            Key of the random streams.
        call
            How the network is run on one group's inputs; by default directly.
        """
        run = _scores if call is None else call
        stitched: torch.Tensor | None = None
        for group, region in enumerate(self.regions(images, labels)):
            noisy = self.draw(images, region, self.stream(purpose, step, group, images.device))
            scores = run(network, noisy)
            _require_outputs(scores, region, len(images))
            if stitched is None:
                stitched = scores.new_zeros((*scores.shape[:2], *labels.shape[1:])).flatten(2)
            layout = self.layout(tuple(images.shape[1:]), tuple(labels.shape[1:]))
            members = torch.as_tensor(layout.outputs.members(group), device=images.device)
            stitched = stitched.index_copy(2, members, region.select(scores).flatten(2))
        assert stitched is not None
        return stitched.unflatten(2, labels.shape[1:])

    def validation_scores(
        self,
        network: nn.Module,
        images: Float[torch.Tensor, "batch *item"],
        labels: Shaped[torch.Tensor, "batch *outputs"],
        step: int,
    ) -> Float[torch.Tensor, "batch classes *outputs"]:
        """As `stitched`, from streams that no training step uses."""
        return self.stitched(network, images, labels, step, purpose=_VALIDATION)


def _scores(network: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    return output_tensor(network(inputs))[0]


def _recomputed_scores(network: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    scores = checkpoint(_scores, network, inputs, use_reentrant=False)
    assert isinstance(scores, torch.Tensor)
    return scores


def _require_outputs(scores: torch.Tensor, region: Region, batch: int) -> None:
    if scores.ndim < 2 or scores.shape[0] != batch or tuple(scores.shape[2:]) != region.output_shape:
        raise InvalidInputError(
            "network",
            f"it returned shape {tuple(scores.shape)} where scores (batch, classes, *{region.output_shape}) were due",
            "Return one score per class and label, at the resolution of the labels",
        )


@dataclass(frozen=True, eq=False)
class NoisyBatch:
    """Noisy inputs, and the labels that belong to them.

    Parameters
    ----------
    inputs
        What the network gets, cropped to what the drawn group sees, with the channel that it is told, if any.
    labels
        Labels of the network's outputs for these inputs, `IGNORED` outside of the drawn group.
    groups
        Output group drawn for each sample.
    """

    inputs: Float[torch.Tensor, "batch *crop"]
    labels: Int[torch.Tensor, "batch *outputs"]
    groups: Int[np.ndarray, "batch"]


class Augmentation(ABC):
    """How a training step makes noisy inputs and a loss from a clean batch.

    Parameters
    ----------
    noise
        The distributions to draw from.
    """

    def __init__(self, noise: GroupNoise) -> None:
        self.noise = noise

    @property
    def name(self) -> str:
        """What the weights depend on besides the noise, to tell runs apart."""
        return type(self).__name__

    @abstractmethod
    def loss(
        self,
        network: nn.Module,
        images: Float[torch.Tensor, "batch *item"],
        labels: Int[torch.Tensor, "batch *outputs"],
        loss: Loss,
        step: int,
    ) -> Float[torch.Tensor, ""]:
        """The loss of one step, to be differentiated.

        Parameters
        ----------
        network
            Returns scores (batch, classes, *outputs) for inputs in the space of the noise.
        images, labels
            A clean batch; labels of `IGNORED` do not count.
        loss
            See `losses`.
        step
            Number of the training step; every step has its own noise.
        """


class OneGroup(Augmentation):
    """One output group is drawn for each sample, and only that group's outputs enter the loss.

    Where the groups' windows differ in size, all samples of a batch share one drawn group. With one output group this
    is ordinary training with isotropic noise (Cohen et al. 2019).

    In a loop of one's own::

        augmentation = OneGroup(GroupNoise(GridLayout((3, 5), 0.15, 1.0), Gaussian()))
        for step, (images, labels) in enumerate(loader):
            batch = augmentation(images, labels, step)
            loss = cross_entropy(network(batch.inputs), batch.labels)  # IGNORED is torch's default ignore_index
    """

    def __call__(
        self,
        images: Float[torch.Tensor, "batch *item"],
        labels: Int[torch.Tensor, "batch *outputs"],
        step: int,
    ) -> NoisyBatch:
        """Draw groups and noise for one step; the same step gives the same draws.

        Raises
        ------
        InvalidInputError
            If the layout does not fit the batch, or the step is negative.
        """
        noise = self.noise
        regions = noise.regions(images, labels)
        layout = noise.layout(tuple(images.shape[1:]), tuple(labels.shape[1:]))
        shapes = {(region.level_map.shape, region.output_shape) for region in regions}
        stream = noise.stream(_NOISE, step, 0, images.device)
        drawn = noise.generator(_GROUPS, step).integers(len(regions), size=len(images))
        if len(shapes) > 1:
            drawn[:] = drawn[0]
        first = regions[int(drawn[0])]
        inputs: torch.Tensor | None = None
        kept = labels.new_full((len(labels), *first.output_shape), IGNORED)
        for group in np.unique(drawn):
            region, chosen = regions[group], torch.as_tensor(np.flatnonzero(drawn == group), device=images.device)
            noisy = noise.draw(images[chosen], region, stream)
            inputs = noisy.new_empty((len(images), *noisy.shape[1:])) if inputs is None else inputs
            inputs[chosen] = noisy
            view = layout.view(int(group)).outputs
            seen = labels[chosen] if view is None else labels[chosen][(..., *view)]
            mask = torch.as_tensor(layout.outputs.mask(int(group)), device=images.device)
            mask = mask if view is None else mask[view]
            kept[chosen] = torch.where(mask, seen, IGNORED)
        assert inputs is not None
        return NoisyBatch(inputs, kept, drawn)

    def loss(
        self,
        network: nn.Module,
        images: Float[torch.Tensor, "batch *item"],
        labels: Int[torch.Tensor, "batch *outputs"],
        loss: Loss,
        step: int,
    ) -> Float[torch.Tensor, ""]:
        """The loss of the drawn groups' outputs."""
        batch = self(images, labels, step)
        return loss(_scores(network, batch.inputs), batch.labels)


class AllGroups(Augmentation):
    """Every output group gets a draw of its own; the loss is that of the stitched prediction.

    This is how Schuchardt et al. 2023 train their localized models. It costs one pass for each output group.

    Parameters
    ----------
    noise
        The distributions to draw from.
    accumulate
        Keep one group's activations at a time and recompute them while gradients are accumulated (one more forward
        pass, the memory of a single group); False to keep those of all groups. Layers that update running statistics
        (batch norm) see every batch twice when recomputed.
    """

    def __init__(self, noise: GroupNoise, *, accumulate: bool = True) -> None:
        super().__init__(noise)
        self.accumulate = accumulate

    def loss(
        self,
        network: nn.Module,
        images: Float[torch.Tensor, "batch *item"],
        labels: Int[torch.Tensor, "batch *outputs"],
        loss: Loss,
        step: int,
    ) -> Float[torch.Tensor, ""]:
        """The loss of all outputs, each predicted under its own group's noise."""
        call = _recomputed_scores if self.accumulate else _scores
        return loss(self.noise.stitched(network, images, labels, step, call=call), labels)

"""The sections of a configuration file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.known import CityscapesSection, PascalVocSection, SegmentationModelSection
from localsmooth.config.section import ExistingPath, Section

__all__ = [
    "ArraysSection",
    "BernoulliSection",
    "CallableModelSection",
    "Configuration",
    "DigitScenesModelSection",
    "DigitScenesSection",
    "GaussianSection",
    "ImageFilesSection",
    "LayoutSection",
    "LocalitySection",
    "OnnxModelSection",
    "SamplingSection",
    "SparseFlipsSection",
    "TorchModelSection",
    "UniformSection",
]


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, lt=1)]
UpsampleKey = bool | list[Annotated[int, Field(ge=1)]] | None


class ModelSection(Section):
    """What every model needs to say about itself."""

    classes: int | None = Field(default=None, ge=2)
    """Number of classes, where it cannot be read off the model."""
    bounds: tuple[float, float] | None = None
    """Smallest and largest clean input value, in the units of the noise levels and budgets."""

    @field_validator("bounds")
    @classmethod
    def _interval(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not value[0] < value[1]:
            raise ValueError("the lower bound must be below the upper bound")
        return value


class TorchModelSection(ModelSection):
    """A torch module made by a function of the user's own."""

    kind: Literal["torch"]
    factory: str
    """`package.module:function`; called without arguments, returns the module."""
    checkpoint: ExistingPath | None = None
    """Weights to load into the module: safetensors, or a torch state dict (read with weights_only)."""
    output: Literal["logits", "probabilities", "labels"] = "logits"
    """What the model returns."""
    threshold: float | None = None
    """For a one-channel output: an output is class 1 above this, in the units of that channel."""
    mean: list[float] | None = None
    """Mean per channel, subtracted inside the model."""
    std: list[Positive] | None = None
    """Standard deviation per channel, divided by inside the model."""
    pad_multiple: int | None = Field(default=None, ge=1)
    """Inputs are mirrored up to a multiple of this; outputs are cropped back."""
    upsample: UpsampleKey = None
    """True: interpolate scores to the size of the input. A list of sizes: to these. By default what comes as `.logits`
    of several spatial axes."""
    device: str = "cpu"
    """Where torch runs the model, such as "cuda"."""


class OnnxModelSection(ModelSection):
    """An ONNX file, run by ONNX Runtime."""

    kind: Literal["onnx"]
    path: ExistingPath
    """The file."""
    output: Literal["logits", "probabilities", "labels"] = "logits"
    """What the model returns."""
    threshold: float | None = None
    """For a one-channel output: an output is class 1 above this, in the units of that channel."""
    mean: list[float] | None = None
    """Mean per channel, subtracted inside the model."""
    std: list[Positive] | None = None
    """Standard deviation per channel, divided by inside the model."""
    pad_multiple: int | None = Field(default=None, ge=1)
    """Inputs are mirrored up to a multiple of this; outputs are cropped back."""
    upsample: UpsampleKey = None
    """True: interpolate scores to the size of the input. A list of sizes: to these."""
    output_name: str | None = None
    """Which output to read; needed where the file has several."""


class CallableModelSection(ModelSection):
    """A function from a numpy batch to a numpy array of scores or labels."""

    kind: Literal["callable"]
    function: str
    """`package.module:function`."""
    output: Literal["logits", "probabilities", "labels"] = "logits"
    """What the model returns."""
    threshold: float | None = None
    """For a one-channel output: an output is class 1 above this, in the units of that channel."""
    mean: list[float] | None = None
    """Mean per channel, subtracted before the function is called."""
    std: list[Positive] | None = None
    """Standard deviation per channel, divided by before the function is called."""
    pad_multiple: int | None = Field(default=None, ge=1)
    """Inputs are mirrored up to a multiple of this; outputs are cropped back."""
    upsample: UpsampleKey = None
    """True: interpolate scores to the size of the input. A list of sizes: to these."""


class DigitScenesModelSection(Section):
    """The small U-Net for scenes of handwritten digits that comes with the package."""

    kind: Literal["digit-scenes"]


class ArraysSection(Section):
    """Inputs and labels from .npy files."""

    kind: Literal["arrays"]
    images: ExistingPath
    """Array of shape items × channels × spatial axes."""
    labels: ExistingPath | None = None
    """Integer array of shape items × outputs."""
    items: list[int] | None = None
    """Which items to certify; all by default."""
    ignore_label: int | None = None
    """Label of outputs that count neither for nor against the model."""
    class_names: list[str] | None = None
    """Name of every class, in order."""


class ImageFilesSection(Section):
    """Inputs and labels from picture files; labels are single-channel pictures of class numbers."""

    kind: Literal["images"]
    images: ExistingPath
    """A picture, or a folder of pictures, taken in the order of their names and turned as their EXIF tags say."""
    labels: ExistingPath | None = None
    """A picture, or a folder with one picture of the same stem for each input; turned likewise."""
    items: list[int] | None = None
    """Positions of the pictures to certify; all by default."""
    scale: Positive = 255.0
    """Pixel values are divided by this: 255 for pictures of 8 bits, 65535 for grey ones of 16."""
    ignore_label: int | None = None
    """Label of outputs that count neither for nor against the model."""
    class_names: list[str] | None = None
    """Name of every class, in order."""


class DigitScenesSection(Section):
    """Scenes of real handwritten digits."""

    kind: Literal["digit-scenes"]
    split: Literal["test", "validation"] = "test"
    """Digits that the scenes show; no digit is in two splits."""
    items: list[int] = Field(default=[0, 1, 2], min_length=1)
    """Numbers of the scenes."""
    seed: int = Field(default=0, ge=0)
    """Another seed gives other scenes of the same digits."""


class GaussianSection(Section):
    """Gaussian noise for the l2 norm."""

    distribution: Literal["gaussian"]
    sigma_min: Positive
    """Standard deviation inside an output's own cell."""
    sigma_max: Positive
    """Standard deviation in the farthest cell."""
    clamp: bool = False
    """Clamp noisy inputs to the bounds of the model."""

    @model_validator(mode="after")
    def _ordered(self) -> GaussianSection:
        if self.sigma_max < self.sigma_min:
            raise ValueError("sigma_max must not be below sigma_min")
        return self


class UniformSection(Section):
    """Uniform noise for the l1 norm: each input is moved by up to lambda."""

    distribution: Literal["uniform"]
    lambda_min: Positive
    """Half width inside an output's own cell."""
    lambda_max: Positive
    """Half width in the farthest cell."""
    clamp: bool = False
    """Clamp noisy inputs to the bounds of the model."""

    @model_validator(mode="after")
    def _ordered(self) -> UniformSection:
        if self.lambda_max < self.lambda_min:
            raise ValueError("lambda_max must not be below lambda_min")
        return self


class BernoulliSection(Section):
    """Flips of binary inputs, for a number of changed bits."""

    distribution: Literal["bernoulli"]
    theta_min: Probability
    """Probability of a flip inside an output's own cell."""
    theta_max: Probability
    """Probability of a flip in the farthest cell; 0.5 hides the inputs."""

    @model_validator(mode="after")
    def _ordered(self) -> BernoulliSection:
        if self.theta_max < self.theta_min:
            raise ValueError("theta_max must not be below theta_min")
        return self


class SparseFlipsSection(Section):
    """Sparsity-aware flips of binary inputs, for added and deleted bits."""

    distribution: Literal["sparse-flips"]
    addition_min: Probability
    """Probability that a zero becomes one, inside an output's own cell."""
    addition_max: Probability
    """The same in the farthest cell."""
    deletion_min: Probability
    """Probability that a one becomes zero, inside an output's own cell."""
    deletion_max: Probability
    """The same in the farthest cell."""
    flips: Literal["any", "additions", "deletions"] = "any"
    """Which flips a budget buys."""

    @model_validator(mode="after")
    def _ordered(self) -> SparseFlipsSection:
        if self.addition_max < self.addition_min or self.deletion_max < self.deletion_min:
            raise ValueError("a largest probability must not be below the smallest")
        return self


class LayoutSection(Section):
    """How inputs and outputs are cut into cells and how the level grows between them."""

    cells: list[Annotated[int, Field(ge=1)]] = Field(min_length=1)
    """Number of cells along each spatial axis; [1, 1] is isotropic smoothing."""
    levels: ExistingPath | None = None
    """Level matrix, cells × cells, to use instead of the distance rule: a .npy array (inf hides a cell), or the .npz
    file that `localsmooth locality` wrote, which refuses to certify items that it was fitted on."""
    metric: Literal["chebyshev", "euclidean"] = "chebyshev"
    """Distance between cells."""
    interpolation: Literal["linear", "variance"] = "linear"
    """Whether the level or its square grows linearly."""
    reach: Literal["grid", "cell"] = "grid"
    """Whether the largest level is reached at the grid's largest distance or at each cell's own."""
    mask_beyond: int | None = Field(default=None, ge=0)
    """Hide inputs farther than this many elements from an output's cell."""
    window_margin: int | None = Field(default=None, ge=0)
    """Run the model on each cell and this many elements around it only."""
    window_align: int = Field(default=1, ge=1)
    """Windows start and end at multiples of this, the model's stride."""


class SamplingSection(Section):
    """How many samples, and how they are drawn."""

    n_candidate: int = Field(ge=1)
    """N₁, samples per output group to choose the candidates."""
    n_bound: int = Field(ge=1)
    """N₂, further samples per output group to bound the candidates' probabilities."""
    seed: int = Field(default=0, ge=0)
    """Seed of all noise."""
    chunk_size: int = Field(default=128, ge=1)
    """Samples that are stored together; what an interruption can lose."""
    stop_early: bool = False
    """Stop an output group once each output is certified for the largest budget or hopeless; for votes only."""
    stop_for: Literal["all-budgets", "largest-budget"] = "all-budgets"
    """What counts as hopeless with stop_early: to certify no budget, or not to certify the largest one."""
    batch_size: int | None = Field(default=None, ge=1)
    """Samples per forward pass; measured before the run by default."""
    channels_last: bool | None = None
    """Memory order of torch models; measured before the run by default."""
    precision: Literal["float32", "float16", "bfloat16"] = "float32"
    """Precision in which a torch model is evaluated; it is part of what is certified."""
    compile: bool = False
    """Run a torch model through torch.compile."""
    scores: Literal["moments", "histogram"] | None = None
    """Count the candidates' scores too, for certificates from scores; by default where those are asked for."""
    score_grid: int | None = Field(default=None, ge=2, le=4096)
    """Grid steps in [0, 1] to which scores are rounded down: by default 1024 for moments, 128 for a histogram."""

    @model_validator(mode="after")
    def _settings_are_used(self) -> SamplingSection:
        if self.stop_for != "all-budgets" and not self.stop_early:
            raise ValueError("stop_for has no effect without stop_early = true")
        if self.score_grid is not None and self.scores is None:
            raise ValueError('score_grid has no effect without scores = "moments" or "histogram"')
        return self


class LocalitySection(Section):
    """How `localsmooth locality` measures what noise in one cell does to the predictions of another."""

    quality: float | None = Field(default=None, gt=0, lt=1)
    """Wanted share of votes that are the clean prediction; by default what the file's distance rule attains."""
    levels: list[Positive] | None = Field(default=None, min_length=2)
    """Noise levels to try, between which the proposal stays; by default as `count` says."""
    count: int = Field(default=6, ge=2, le=100)
    """Number of levels that are tried, in equal ratios from the smallest to the largest of `[noise]`."""
    samples: int = Field(default=16, ge=1)
    """Samples of each item at each level and cell."""
    seed: int = Field(default=0, ge=0)
    """Seed of the noise, whose streams no certification uses."""


AnyModel = Annotated[
    TorchModelSection | OnnxModelSection | CallableModelSection | DigitScenesModelSection | SegmentationModelSection,
    Field(discriminator="kind"),
]
AnyData = Annotated[
    ArraysSection | ImageFilesSection | DigitScenesSection | PascalVocSection | CityscapesSection,
    Field(discriminator="kind"),
]


AnyNoise = Annotated[
    GaussianSection | UniformSection | BernoulliSection | SparseFlipsSection, Field(discriminator="distribution")
]


class Configuration(Section):
    """All that a file asks for: one certification run."""

    name: str = "localized"
    """What reports call the method."""
    model: AnyModel
    """The base classifier."""
    data: AnyData
    """What is certified."""
    layout: LayoutSection
    """Cells of inputs and outputs."""
    noise: AnyNoise
    """The smoothing distribution."""
    sampling: SamplingSection
    """How samples are drawn."""
    certificate: CertificateSection
    """What is proven from them."""
    execution: ExecutionSection = Field(default_factory=ExecutionSection)
    """Where samples are drawn."""
    calibration: AnyData | None = None
    """Items for `localsmooth locality`; none of them may be among those that are certified."""
    locality: LocalitySection | None = None
    """How `localsmooth locality` measures, if not by its defaults; not used otherwise."""

"""The sections of a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, no_type_check

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

__all__ = [
    "ArraysSection",
    "BernoulliSection",
    "BonferroniSection",
    "BudgetRange",
    "CallableModelSection",
    "CertificateSection",
    "Configuration",
    "DigitScenesModelSection",
    "DigitScenesSection",
    "FixedThresholdHolmSection",
    "GaussianSection",
    "ImageFilesSection",
    "KFamilywiseSection",
    "LayoutSection",
    "OnnxModelSection",
    "PaperHolmSection",
    "SamplingSection",
    "SparseFlipsSection",
    "TorchModelSection",
    "UniformSection",
]


@no_type_check  # the annotation is a protocol that cannot be checked at run time
def _resolve(path: Path, info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    resolved = path if path.is_absolute() else folder / path
    if not resolved.exists():
        raise ValueError(f"no such file: {resolved}")
    return resolved


ExistingPath = Annotated[Path, AfterValidator(_resolve)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, lt=1)]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values do not change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    threshold: float | None = None
    """For a one-channel output: probability from which an output is class 1."""
    mean: list[float] | None = None
    std: list[Positive] | None = None
    pad_multiple: int | None = Field(default=None, ge=1)
    device: str = "cpu"


class OnnxModelSection(ModelSection):
    """An ONNX file, run by ONNX Runtime."""

    kind: Literal["onnx"]
    path: ExistingPath
    output: Literal["logits", "probabilities", "labels"] = "logits"
    threshold: float | None = None
    mean: list[float] | None = None
    std: list[Positive] | None = None
    pad_multiple: int | None = Field(default=None, ge=1)


class CallableModelSection(ModelSection):
    """A function from a numpy batch to a numpy array of scores or labels."""

    kind: Literal["callable"]
    function: str
    """`package.module:function`."""
    output: Literal["logits", "probabilities", "labels"] = "logits"


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
    class_names: list[str] | None = None


class ImageFilesSection(Section):
    """Inputs and labels from picture files; labels are single-channel pictures of class numbers."""

    kind: Literal["images"]
    images: ExistingPath
    """A picture, or a folder of pictures, taken in the order of their names."""
    labels: ExistingPath | None = None
    """A picture, or a folder with one picture of the same stem for each input."""
    items: list[int] | None = None
    scale: Positive = 255.0
    """Pixel values are divided by this."""
    ignore_label: int | None = None
    class_names: list[str] | None = None


class DigitScenesSection(Section):
    """Test scenes of real handwritten digits."""

    kind: Literal["digit-scenes"]
    items: list[int] = Field(default=[0, 1, 2], min_length=1)
    seed: int = Field(default=0, ge=0)


class GaussianSection(Section):
    """Gaussian noise for the l2 norm."""

    distribution: Literal["gaussian"]
    sigma_min: Positive
    """Standard deviation inside an output's own cell."""
    sigma_max: Positive
    """Standard deviation in the farthest cell."""
    clamp: bool = False

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
    deletion_min: Probability
    """Probability that a one becomes zero, inside an output's own cell."""
    deletion_max: Probability
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
    metric: Literal["chebyshev", "euclidean"] = "chebyshev"
    interpolation: Literal["linear", "variance"] = "linear"
    reach: Literal["grid", "cell"] = "grid"
    mask_beyond: int | None = Field(default=None, ge=0)
    window_margin: int | None = Field(default=None, ge=0)
    window_align: int = Field(default=1, ge=1)


class SamplingSection(Section):
    """How many samples, and how they are drawn."""

    n_candidate: int = Field(ge=1)
    n_bound: int = Field(ge=1)
    seed: int = Field(default=0, ge=0)
    chunk_size: int = Field(default=128, ge=1)
    batch_size: int | None = Field(default=None, ge=1)
    """Samples per forward pass; measured before the run by default."""
    channels_last: bool | None = None
    precision: Literal["float32", "float16", "bfloat16"] = "float32"
    compile: bool = False
    scores: Literal["moments", "histogram"] | None = None
    """Count the candidates' scores too, for certificates from scores; by default where those are asked for."""
    score_grid: int | None = Field(default=None, ge=2, le=4096)
    """Grid steps in [0, 1] to which scores are rounded down: by default 1024 for moments, 128 for a histogram."""


class BudgetRange(Section):
    """Equally spaced budgets."""

    start: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    stop: float = Field(gt=0, allow_inf_nan=False)
    count: int = Field(ge=2, le=10_000)


BaseName = Literal[
    "gaussian-votes",
    "gaussian-scores",
    "uniform-votes",
    "bernoulli-scores",
    "sparse-scores",
    "renyi-votes",
    "exact-votes",
]


class BonferroniSection(Section):
    """Every bound holds at once; alpha is shared equally."""

    rule: Literal["bonferroni"]


class KFamilywiseSection(Section):
    """At most k - 1 bounds fail, which are subtracted from every count."""

    rule: Literal["k_familywise"]
    k: int = Field(ge=1)


class FixedThresholdHolmSection(Section):
    """Step-down test that the votes exceed a threshold fixed beforehand (SegCertify)."""

    rule: Literal["fixed_threshold_holm"]
    tau: float = Field(gt=0.5, lt=1)


class PaperHolmSection(Section):
    """Ranked Clopper-Pearson bounds: not simultaneous, only to reproduce published curves."""

    rule: Literal["paper_holm"]


AnyRule = Annotated[
    BonferroniSection | KFamilywiseSection | FixedThresholdHolmSection | PaperHolmSection, Field(discriminator="rule")
]


def _budgets_tag(value: object) -> str:
    return "(range)" if isinstance(value, (dict, BudgetRange)) else "(values)"


Budget = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Budgets = Annotated[
    Annotated[list[Budget], Field(min_length=1), Tag("(values)")] | Annotated[BudgetRange, Tag("(range)")],
    Discriminator(_budgets_tag),
]


class CertificateSection(Section):
    """What is proven from the samples."""

    alpha: float = Field(gt=0, lt=1)
    """Probability with which an item's certificate may fail."""
    budgets: Budgets
    """Budgets ε, as a list or as equally spaced values."""
    bounds: list[Literal["naive", "lp", "envelope"]] = Field(default=["naive", "lp", "envelope"], min_length=1)
    """Collective bounds, weakest first."""
    base: list[BaseName] | None = Field(default=None, min_length=1)
    """Base certificates; all hold at once, and votes and scores share alpha. By default the one from votes that goes with the noise."""
    renyi_orders: list[Annotated[float, Field(gt=1, allow_inf_nan=False)]] | None = Field(default=None, min_length=1)
    """Orders of renyi-votes."""
    many_outputs: AnyRule = Field(default_factory=lambda: BonferroniSection(rule="bonferroni"))
    """How alpha is shared among the outputs."""
    score_bound: Literal["empirical_bernstein", "cdf_band", "betting"] = "empirical_bernstein"
    """Bound on scores, for certificates from scores."""

    def budget_values(self) -> list[float]:
        """All budgets, ascending."""
        if isinstance(self.budgets, BudgetRange):
            return [float(b) for b in np.linspace(self.budgets.start, self.budgets.stop, self.budgets.count)]
        return sorted(self.budgets)


AnyModel = Annotated[
    TorchModelSection | OnnxModelSection | CallableModelSection | DigitScenesModelSection, Field(discriminator="kind")
]
AnyData = Annotated[ArraysSection | ImageFilesSection | DigitScenesSection, Field(discriminator="kind")]


AnyNoise = Annotated[
    GaussianSection | UniformSection | BernoulliSection | SparseFlipsSection, Field(discriminator="distribution")
]


class Configuration(Section):
    """One certification run."""

    name: str = "localized"
    model: AnyModel
    data: AnyData
    layout: LayoutSection
    noise: AnyNoise
    sampling: SamplingSection
    certificate: CertificateSection

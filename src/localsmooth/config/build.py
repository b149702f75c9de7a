"""From the sections of a configuration to the objects they describe."""

from __future__ import annotations

import numpy as np

from localsmooth.bounds import (
    SCORE_BOUNDS,
    Bonferroni,
    CandidateRule,
    CandidateWeights,
    FixedThresholdHolm,
    KFamilywise,
    PaperHolm,
    Simultaneous,
)
from localsmooth.certificates import (
    SCORE_CERTIFICATES,
    VOTE_CERTIFICATES,
    ExactVotes,
    RenyiVotes,
    ScoreCertificate,
    VoteCertificate,
)
from localsmooth.collective import Bound, Exact
from localsmooth.config.certificate import (
    AnyRule,
    CertificateSection,
    FixedThresholdHolmSection,
    KFamilywiseSection,
    PaperHolmSection,
    WeightedBonferroniSection,
)
from localsmooth.config.explain import ConfigurationError
from localsmooth.config.known import CityscapesSection, PascalVocSection
from localsmooth.config.schema import (
    AnyData,
    AnyNoise,
    ArraysSection,
    BernoulliSection,
    Configuration,
    DigitScenesSection,
    GaussianSection,
    ImageFilesSection,
    SparseFlipsSection,
    UniformSection,
)
from localsmooth.datasets import (
    Cityscapes,
    CityscapesSplit,
    Item,
    ItemSet,
    PascalVoc,
    VocSplit,
    load_arrays,
    load_pictures,
)
from localsmooth.layout import (
    GridLayout,
    chebyshev,
    euclidean,
    farthest_of_each_cell,
    farthest_of_grid,
    linear,
    linear_in_variance,
)
from localsmooth.locality import LevelsFile, item_digest, read_levels, require_unseen
from localsmooth.noise import Bernoulli, Gaussian, Noise, SparseFlips, Uniform
from localsmooth.runs import SamplingPlan
from localsmooth.sampling import SamplingOptions
from localsmooth.scenes import CLASS_NAMES, DigitScenes, Split
from localsmooth.tasks.arrays.settings import Settings
from localsmooth.tasks.arrays.threat import Flips, ItemThreat, Kind, NormBall
from localsmooth.tasks.registry import COLLECTIVE_BOUNDS, default_certificate
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.stopping import StopWhenDecided

__all__ = [
    "build_calibration",
    "build_items",
    "build_layout",
    "build_noise",
    "build_options",
    "build_plan",
    "build_rule",
    "build_scores",
    "build_settings",
]

_METRICS = {"chebyshev": chebyshev, "euclidean": euclidean}
_INTERPOLATIONS = {"linear": linear, "variance": linear_in_variance}
_REACHES = {"grid": farthest_of_grid, "cell": farthest_of_each_cell}


def build_items(configuration: Configuration) -> ItemSet:
    """Load the items to certify.

    Raises
    ------
    InvalidInputError
        If the layout's levels were fitted on one of them.
    """
    items = _items(configuration.data)
    if configuration.layout.levels is not None:
        require_unseen(read_levels(configuration.layout.levels), items)
    return items


def build_calibration(configuration: Configuration) -> ItemSet:
    """Load the items that levels are fitted on.

    Raises
    ------
    ConfigurationError
        If the file names none.
    InvalidInputError
        If one of them is to be certified.
    """
    if configuration.calibration is None:
        raise ConfigurationError(
            "calibration: this section is missing. Name items that are not certified, as in [data]."
        )
    items = _items(configuration.calibration)
    fitted = LevelsFile(np.empty((0, 0)), frozenset(item_digest(item.image) for item in items))
    require_unseen(fitted, _items(configuration.data), "calibration")
    return items


def _items(section: AnyData) -> ItemSet:
    if isinstance(section, ArraysSection):
        return load_arrays(
            section.images,
            section.labels,
            items=section.items,
            class_names=section.class_names,
            ignore_label=section.ignore_label,
        )
    if isinstance(section, ImageFilesSection):
        return load_pictures(
            section.images,
            section.labels,
            items=section.items,
            scale=section.scale,
            class_names=section.class_names,
            ignore_label=section.ignore_label,
        )
    if isinstance(section, PascalVocSection):
        voc = PascalVoc(section.root, VocSplit(section.split), section.boundaries, scale=section.scale)
        return voc.item_set(section.items)
    if isinstance(section, CityscapesSection):
        cityscapes = Cityscapes(section.root, CityscapesSplit(section.split), scale=section.scale)
        return cityscapes.item_set(section.items)
    return _scenes(section)


def _scenes(section: DigitScenesSection) -> ItemSet:
    scenes = DigitScenes(Split(section.split), seed=section.seed)
    items: list[Item] = []
    for index in section.items:
        scene = scenes.scene(index)
        items.append(Item(index, f"scene {index}", scene.image, scene.labels))
    return ItemSet(items, CLASS_NAMES)


def build_layout(configuration: Configuration) -> GridLayout:
    """Make the rule that lays out items of any size."""
    section = configuration.layout
    minimum, maximum = _levels(configuration.noise)
    return GridLayout(
        cells=tuple(section.cells),
        minimum=minimum,
        maximum=maximum,
        levels=None if section.levels is None else read_levels(section.levels).levels,
        metric=_METRICS[section.metric],
        interpolation=_INTERPOLATIONS[section.interpolation],
        reach=_REACHES[section.reach],
        mask_beyond=section.mask_beyond,
        window_margin=section.window_margin,
        window_align=section.window_align,
    )


Level = float | tuple[float, ...]


def _levels(section: AnyNoise) -> tuple[Level, Level]:
    """Levels in the own and in the farthest cell."""
    if isinstance(section, GaussianSection):
        return section.sigma_min, section.sigma_max
    if isinstance(section, UniformSection):
        return section.lambda_min, section.lambda_max
    if isinstance(section, BernoulliSection):
        return section.theta_min, section.theta_max
    return (section.addition_min, section.deletion_min), (section.addition_max, section.deletion_max)


def build_noise(section: AnyNoise) -> Noise:
    """Make the smoothing distribution."""
    if isinstance(section, GaussianSection):
        return Gaussian(clamp=section.clamp)
    if isinstance(section, UniformSection):
        return Uniform(clamp=section.clamp)
    return Bernoulli() if isinstance(section, BernoulliSection) else SparseFlips()


def build_scores(configuration: Configuration) -> ScoreCounting | None:
    """Make the way scores are counted, where the configuration says so."""
    section = configuration.sampling
    if section.scores is None:
        return None
    return ScoreCounting(section.scores, section.score_grid or (1024 if section.scores == "moments" else 128))


def build_settings(section: CertificateSection, noise_section: AnyNoise) -> Settings:
    """Make what is proven from the tallies."""
    noise = build_noise(noise_section)
    return Settings(
        alpha=section.alpha,
        budgets=tuple(section.budget_values()),
        certificates=_certificates(section, noise),
        bounds={name: _bound(name, section) for name in section.bounds},
        simultaneous=build_rule(section.many_outputs),
        score_bound=SCORE_BOUNDS[section.score_bound](),
        threat=_threat(noise_section),
    )


def _bound(name: str, section: CertificateSection) -> Bound:
    return Exact(section.exact_gap, section.exact_seconds) if name == "exact" else COLLECTIVE_BOUNDS[name]


def _certificates(section: CertificateSection, noise: Noise) -> tuple[VoteCertificate | ScoreCertificate, ...]:
    default = default_certificate(noise)
    if section.base is None and section.renyi_orders is None:
        return (default,)
    if section.base is None and not isinstance(default, RenyiVotes):
        raise ConfigurationError(
            f"certificate.renyi_orders: it has no effect, since {default.name} go with this noise. Leave it out, or "
            "use noise that flips bits."
        )
    made: list[VoteCertificate | ScoreCertificate] = []
    for name in section.base or [default.name]:
        if name == RenyiVotes.name and section.renyi_orders is not None:
            made.append(RenyiVotes(tuple(section.renyi_orders)))
        elif name == ExactVotes.name:
            made.append(section.exact_votes.build())
        elif name in VOTE_CERTIFICATES:
            made.append(VOTE_CERTIFICATES[name]())
        else:
            made.append(SCORE_CERTIFICATES[name]())
    return tuple(made)


def build_rule(section: AnyRule) -> Simultaneous | CandidateRule:
    """Make the rule for many outputs."""
    if isinstance(section, WeightedBonferroniSection):
        return CandidateWeights() if section.thresholds is None else CandidateWeights(tuple(section.thresholds))
    if isinstance(section, KFamilywiseSection):
        return KFamilywise(section.k)
    if isinstance(section, FixedThresholdHolmSection):
        return FixedThresholdHolm(section.tau)
    return PaperHolm() if isinstance(section, PaperHolmSection) else Bonferroni()


def _threat(section: AnyNoise) -> ItemThreat:
    if not isinstance(section, SparseFlipsSection):
        return NormBall()
    return Flips({"any": Kind.ANY, "additions": Kind.ADDITIONS, "deletions": Kind.DELETIONS}[section.flips])


def build_plan(configuration: Configuration) -> SamplingPlan:
    """Make the sampling plan."""
    section = configuration.sampling
    only = section.stop_for == "largest-budget"
    stop = StopWhenDecided(largest_budget_only=only) if section.stop_early else None
    return SamplingPlan(section.n_candidate, section.n_bound, section.seed, section.chunk_size, stop)


def build_options(configuration: Configuration) -> SamplingOptions:
    """Make the options of execution."""
    section = configuration.sampling
    return SamplingOptions(batch_size=section.batch_size, channels_last=section.channels_last)

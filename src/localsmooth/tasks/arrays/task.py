"""Arrays: images, volumes, sequences and tables of features under a model that takes batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import ClassVar

import numpy as np
import xarray as xr
from jaxtyping import Float

from localsmooth.bounds import require_certifiable
from localsmooth.certificates import require_applicable
from localsmooth.collective import Bound
from localsmooth.datasets import ItemSet
from localsmooth.errors import InvalidInputError
from localsmooth.execution import SamplingProgress
from localsmooth.layout import Layout
from localsmooth.models import Model, warn_of_scale
from localsmooth.noise import BinaryNoise, Gaussian, Noise
from localsmooth.results import finite_reach, reach_words
from localsmooth.runs import PassPlan, RunIdentity, Store
from localsmooth.sampling import ArraySubject, SamplingOptions, Subject, prepare_items
from localsmooth.tasks.arrays.assemble import assemble, assemble_overlaps, settle_items
from localsmooth.tasks.arrays.calibration import calibrated_items
from localsmooth.tasks.arrays.inputs import class_names_of, item_set, layouts_of, require_model
from localsmooth.tasks.arrays.reach import reach_of_items, with_budgets
from localsmooth.tasks.arrays.reserve import drawing_charge, less_reserve, noise_of_run
from localsmooth.tasks.arrays.sampled import SampledItem, ignored_outputs, load_items, number_layouts, save_items
from localsmooth.tasks.arrays.settings import Drawn, Settings
from localsmooth.tasks.arrays.tunable import TunableArrays
from localsmooth.tasks.asked_targets import require_stakes
from localsmooth.tasks.base import Assignment, Task
from localsmooth.tasks.reach import Planned
from localsmooth.tasks.record import Facts, RunRecord
from localsmooth.tasks.registry import noise_from_configuration
from localsmooth.tasks.scores import ScoreCounting
from localsmooth.tasks.smoothing import Smoothing
from localsmooth.tasks.stakes import Predicted
from localsmooth.tasks.stopping import StopWhenDecided, with_goals
from localsmooth.tasks.votes import collected_votes

__all__ = ["ArrayTask"]


class ArrayTask(TunableArrays, Task[Sequence[SampledItem], Settings]):
    """A model, and the arrays that it is certified on.

    Parameters
    ----------
    model
        The base classifier, in evaluation mode, with its declared input bounds.
    items
        Items to certify: arrays of shape channels × spatial axes in the model's input space, or an `ItemSet`.
    labels
        Known classes of every output, for certified accuracy; not with an `ItemSet`, which has its own.
    class_names, ignore_label
        As in `ItemSet`.
    units
        Units of inputs and budgets, for the record; bits where noise flips them, if it is not said.

    Raises
    ------
    InvalidInputError
        Naming what is no model, no item or no label.
    """

    name: ClassVar[str] = "arrays"
    proves: ClassVar[type[Settings]] = Settings
    unseen: ClassVar[str] = (
        "How much of its predictions the model keeps under noise is not known: there are no calibration items "
        "([calibration] in a file, calibration= in Python). Items that are certified are not used for it: levels "
        "chosen by them would change with the perturbation, and void the certificate"
    )

    def __init__(
        self,
        model: Model,
        items: ItemSet | Sequence[np.ndarray] | np.ndarray,
        labels: Sequence[np.ndarray] | np.ndarray | None = None,
        *,
        class_names: Sequence[str] | None = None,
        ignore_label: int | None = None,
        units: str | None = None,
    ) -> None:
        require_model(model)
        self.model = model
        self.items = item_set(items, labels, class_names, ignore_label)
        self.units = units

    def _unpredicted(self, layouts: Sequence[Layout], names: Sequence[str]) -> Iterator[Predicted]:
        """Outputs of each item with what is known of them before anything is predicted."""
        for item, made in zip(self.items, layouts, strict=True):
            nothing = np.zeros(made.outputs.labels.size, np.int64)
            label, ignored = item.label, ignored_outputs(item.label, self.items.ignore_label)
            flat = (None if each is None else each.ravel() for each in (label, ignored))
            yield Predicted(nothing, next(flat), nothing, next(flat), names, made.outputs.shape)

    def assign(
        self, smoothing: Smoothing, settings: Settings, options: SamplingOptions, scores: ScoreCounting | None
    ) -> Assignment[Sequence[SampledItem]]:
        """Make a layout for each item, try the model on it, and check labels and settings.

        Raises
        ------
        InvalidInputError
            Naming what does not fit.
        """
        noise = Gaussian() if smoothing.noise is None else smoothing.noise
        proven, settings = settings, settings.completed(noise)
        method = settings.method
        if scores is None and settings.needs_scores:
            scores = ScoreCounting.for_bound(settings.score_bound)
        if scores is not None:
            options = replace(options, counters=scores.counters())
        layouts = layouts_of(self.model, self.items, smoothing.layout)
        self.items.require_labels_within(self.model.classes, [made.outputs.shape for made in layouts])
        names = class_names_of(self.items, self.model)
        require_stakes(settings.targets, self._unpredicted(layouts, names), counting=method is not None)
        if method is not None and method.draws and isinstance(smoothing.plan, PassPlan):
            raise InvalidInputError("passes", f"{method.name} draws in a way of its own", "Pass numbers of samples")
        plan = smoothing.planned(layouts)
        images = [item.image for item in self.items]
        warn_of_scale(self.model, images, [item.name for item in self.items])
        prepared = prepare_items(self.model, images, layouts, noise, options.item_dtype)
        noise = noise_of_run(noise, prepared, layouts, plan.n_bound, settings)
        shown = {id(made): item.image for made, item in zip(layouts, self.items, strict=True)}
        bounding = settings
        for made in layouts:
            noise.validate(made.levels)
            bounding = less_reserve(settings, drawing_charge(noise, made, shown[id(made)].shape, plan.n_bound))
            if method is not None:
                method.require(made, noise)
            if not settings.needs_scores and plan.stop is None:
                require_certifiable(
                    plan.n_bound,
                    bounding.alpha,
                    made.outputs.labels.size,
                    strategy=settings.simultaneous,
                    asked=settings.alpha,
                )
        if method is None:
            require_applicable(settings.certificates, noise, layouts[0].levels)
        sequence = plan.stop.sequence if isinstance(plan.stop, StopWhenDecided) else None
        planned = Planned(plan.n_candidate, plan.n_bound, sequence)
        parts = [
            (item.image, made, ignored_outputs(item.label, self.items.ignore_label))
            for item, made in zip(self.items, layouts, strict=True)
        ]
        reach = reach_of_items(parts, noise, bounding, planned)
        proven, settings = (with_budgets(each, reach, noise) for each in (proven, settings))
        for made in {id(made): made for made in layouts}.values():
            settings.threat.threat(settings.budgets, shown[id(made)], made, noise)  # refuses what does not fit
        plan = with_goals(
            plan,
            layouts,
            noise,
            settings,
            lambda base, made: settings.threat.radius(base, shown[id(made)], made, noise),
        )
        subject = ArraySubject(
            self.model,
            prepared,
            layouts,
            noise,
            plan.seed,
            options.counters,
        )

        @cache
        def clean(index: int) -> np.ndarray:
            return subject.clean_labels(index).ravel()

        def collect(drawn: Sequence[Drawn | None]) -> Sequence[SampledItem]:
            return [
                SampledItem(
                    item.name,
                    item.image,
                    item.label,
                    ignored_outputs(item.label, self.items.ignore_label),
                    made,
                    replace(of_item.votes, clean=clean(index)),
                    of_item.further,
                    names,
                )
                for index, (item, made, of_item) in enumerate(zip(self.items, layouts, drawn, strict=True))
                if of_item is not None
            ]

        def draw(store: Store, progress: SamplingProgress) -> Sequence[SampledItem]:
            assert method is not None
            return collect(method.draw(subject, plan, store, settings, options, progress))

        numbers = number_layouts(layouts)
        facts = Facts(
            task=self.name,
            item_names=[item.name for item in self.items],
            item_layouts=numbers,
            # What a method draws in a way of its own is not counted here.
            shown=[] if method is not None and method.draws else _shown(numbers, layouts),
            class_names=names,
            labelled=self.items.labelled,
            ignore_label=self.items.ignore_label,
            noise=dict(noise.configuration()),
            scores=scores,
            units=_units(self.model, noise) if self.units is None else self.units,
            input_bounds=self.model.bounds,
            device=str(self.model.device),
            precision=self.model.evaluated_in,
            sequence=sequence,
            further=() if method is None else method.further,
        )
        return Assignment(
            subject,
            plan,
            lambda tallies: collect(
                [tally and Drawn(collected_votes(tally, scores, sequence)) for tally in tallies],
            ),
            facts,
            draw if method is not None and method.draws else None,
            proven,
            reach_words(finite_reach({"budget": reach}), {"budget": settings.budgets}, _bound_names(settings)),
        )

    def calibrated(
        self,
        subject: Subject,
        smoothing: Smoothing,
        calibration: object,
        levels: Sequence[Float[np.ndarray, " parameters"]],
        seed: int,
        options: SamplingOptions,
    ) -> Sequence[Subject]:
        """Show items that are not certified, as an `ItemSet`, by the same layout rule."""
        assert isinstance(subject, ArraySubject)
        return calibrated_items(subject, self.items, smoothing, calibration, levels, seed, options)

    @classmethod
    def save(cls, sampled: Sequence[SampledItem], store: Store) -> None:
        """Keep inputs, labels, votes and layouts."""
        save_items(sampled, number_layouts([item.layout for item in sampled]), store)

    @classmethod
    def load(cls, record: RunRecord, store: Store) -> Sequence[SampledItem]:
        """Read the items back."""
        return load_items(record, store)

    @classmethod
    def settle(cls, sampled: Sequence[SampledItem], settings: Settings, record: RunRecord) -> list[Settings]:
        """Choose a rule for each item."""
        return settle_items(sampled, noise_from_configuration(record.noise), settings, record)

    @classmethod
    def result(
        cls,
        sampled: Sequence[SampledItem],
        settings: Settings,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        progress: SamplingProgress | None = None,
    ) -> xr.Dataset:
        """Certify every item."""
        return assemble(sampled, noise_from_configuration(record.noise), record, settings, configuration, progress)

    @classmethod
    def overlaps(
        cls,
        sampled: Sequence[SampledItem],
        settings: Settings,
        record: RunRecord,
        configuration: RunIdentity | None = None,
        *,
        items: Sequence[int] = (),
        bound: Bound,
        tolerance: float = 1e-3,
        tell: Callable[[str], None] | None = None,
    ) -> xr.Dataset:
        """Certify IoU and Dice of some items."""
        chosen = [sampled[number] for number in items] or sampled
        noise = noise_from_configuration(record.noise)
        return assemble_overlaps(chosen, noise, record, settings, configuration, bound, tolerance, tell)

    @classmethod
    def shown_name(cls, record: RunRecord, settings: Settings) -> str:
        """The run's name, and the method in brackets if it is not the one that the run was certified with."""
        described = record.settings.get("method")
        before = described.get("name") if isinstance(described, dict) else None
        now = None if settings.method is None else settings.method.name
        return record.method if now == before else f"{record.method} ({now or 'collective'})"


def _shown(numbers: Sequence[int], layouts: Sequence[Layout]) -> list[list[float]]:
    """Share of the input that a pass is over, by number of the layout and by output group."""
    distinct = dict(zip(numbers, layouts, strict=True))
    return [distinct[number].shown.tolist() for number in sorted(distinct)]


def _bound_names(settings: Settings) -> Sequence[str]:
    return tuple(settings.bounds) if settings.method is None else settings.method.bound_names(settings)


def _units(model: Model, noise: Noise) -> str:
    if isinstance(noise, BinaryNoise):
        return "bits"
    return "input values" if model.bounds is None else f"input values in [{model.bounds[0]:g}, {model.bounds[1]:g}]"


TASK = ArrayTask

"""The sections of a configuration file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, model_validator

from localsmooth.config.certificate import CertificateSection
from localsmooth.config.data import DATA_SECTIONS, AnyData, ArraysSection, DataSection, ItemsSection
from localsmooth.config.execution import ExecutionSection
from localsmooth.config.faults import ConfigurationError, within
from localsmooth.config.layouts import AnyLayout
from localsmooth.config.models import AnyModel
from localsmooth.config.noises import AnyNoise
from localsmooth.config.plugins import PluginsSection
from localsmooth.config.sampling import SamplingSection
from localsmooth.config.section import Section
from localsmooth.config.targets import make_targets
from localsmooth.config.tuning import TuneSection
from localsmooth.datasets import ItemSet
from localsmooth.errors import InvalidInputError
from localsmooth.locality import item_digest
from localsmooth.models import Model
from localsmooth.tasks import Smoothing, Task, require_classes
from localsmooth.tasks.arrays import ArrayTask

__all__ = ["Configuration", "LocalitySection"]


class LocalitySection(Section):
    """How `localsmooth locality` measures what noise in one cell does to the predictions of another."""

    levels: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(default=None, min_length=2)
    """Noise levels to try, between which levels that follow stay; by default as `count` says."""
    count: int = Field(default=6, ge=2, le=100)
    """Number of levels that are tried, in equal ratios from the smallest to the largest of `[noise]`."""
    samples: int = Field(default=16, ge=1)
    """Samples of each item at each level and cell."""
    seed: int = Field(default=0, ge=0)
    """Seed of the noise, whose streams no certification uses."""


class Configuration(Section):
    """All that a file asks for: one certification run."""

    name: str = "localized"
    """What reports call the method."""
    model: AnyModel
    """The base classifier."""
    data: AnyData
    """What is certified."""
    layout: AnyLayout
    """Groups of inputs and outputs."""
    noise: AnyNoise
    """The smoothing distribution."""
    sampling: SamplingSection
    """How samples are drawn."""
    certificate: CertificateSection
    """What is proven from them."""
    execution: ExecutionSection = Field(default_factory=ExecutionSection)
    """Where samples are drawn."""
    calibration: AnyData | None = None
    """Items for `localsmooth plan`, `tune` and `locality`, named as in `[data]`; none of them may be among those that
    are certified. Their classes are called as in `[data]`. Beside points and tokens also arrays with coordinates or
    features first."""
    locality: LocalitySection | None = None
    """How `localsmooth locality` measures, if not by its defaults; not used otherwise."""
    tune: TuneSection | None = None
    """What `localsmooth tune` looks for, if not by its defaults; not used otherwise."""
    plugins: PluginsSection = Field(default_factory=PluginsSection)
    """Modules with noises, certificates and bounds of your own."""

    @model_validator(mode="before")
    @classmethod
    def _suits_data(cls, content: object) -> object:
        """Fill in the kind of layout that goes with the data, also where something else is wrong with these."""
        sections = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        data, layout = sections.get("data"), sections.get("layout")
        if isinstance(data, dict):
            kind = cast("dict[str, Any]", data).get("kind")
            data = DATA_SECTIONS.get(kind) if isinstance(kind, str) else None
        if not isinstance(layout, dict):
            return content
        lays_out = data.lays_out if isinstance(data, DataSection | type) else DataSection.lays_out
        return {**sections, "layout": {"kind": lays_out, **cast("dict[str, Any]", layout)}}

    @model_validator(mode="after")
    def _one_threat(self) -> Configuration:
        if self.certificate.threat is not None and getattr(self.noise, "flips", "any") != "any":
            raise ValueError("noise.flips: certificate.threat says what a budget buys, too; leave one of them out")
        return self

    @model_validator(mode="after")
    def _one_kind_of_input(self) -> Configuration:
        # Arrays may be what other kinds are inside: coordinates or features first.
        other = self.calibration is not None and not isinstance(self.calibration, ArraysSection)
        if other and self.calibration is not None and self.calibration.lays_out != self.data.lays_out:
            own, named = (getattr(section, "kind", "others") for section in (self.data, self.calibration))
            raise ValueError(f'calibration.kind: "{named}" beside data of kind "{own}"; name inputs of the same kind')
        return self

    @model_validator(mode="after")
    def _one_set_of_names(self) -> Configuration:
        own, named = (getattr(section, "class_names", None) for section in (self.data, self.calibration))
        if own is not None and named is not None and own != named:
            raise ValueError("calibration.class_names: [data] names the classes otherwise; leave it out here")
        return self

    @property
    def groups(self) -> int:
        """Number of distributions that are drawn from for each item."""
        return self.layout.groups

    @property
    def labelled(self) -> bool:
        """Whether items come with labels."""
        return self.data.labelled

    @property
    def items(self) -> object:
        """What tells one choice of items from another."""
        return self.data

    def build_model(self, sampling: SamplingSection | None = None) -> Model:
        """Make the model.

        Parameters
        ----------
        sampling
            In place of the file's own.

        Raises
        ------
        InvalidInputError
            Naming the key of [model] at fault.
        """
        with within("model", self.model):
            return self.model.build(self.sampling if sampling is None else sampling)

    def task(self) -> ArrayTask:
        """Make the model, and load what it is certified on.

        Raises
        ------
        InvalidInputError
            If the layout's levels were fitted on one of the items, or one is among those for calibration.
        """
        model = self.build_model()
        with within("data", self.data):
            task = self.data.task(model)
        self.layout.require_unseen(task.items)
        if self.calibration is not None:
            _require_others(self._calibrating(self.calibration, model).items, task.items)
        self._require_classes(task)
        return task

    def prepare(self, out: Path, say: Callable[[str], None]) -> tuple[Task[Any, Any], Smoothing, Any]:
        """Make what is certified, how it is smoothed, and what is proven.

        Parameters
        ----------
        out
            The run directory.
        say
            Told what takes long.
        """
        del out, say
        with within("noise", self.noise):
            noise, threat = self.noise.build(), self.noise.threat()
        with within("layout", self.layout):
            layout = self.layout.build(self.noise, self.data)
        with within("sampling", self.sampling):
            plan = self.sampling.build()
        with within("certificate", self.certificate):
            proven = self.certificate.build(noise, threat)
        return self.task(), Smoothing(layout, plan, noise), proven

    def calibration_task(self, model: Model) -> ArrayTask:
        """Load the items that may be looked at; their classes are called as in `[data]`, unless the section says so.

        Parameters
        ----------
        model
            What is to predict them.

        Raises
        ------
        ConfigurationError
            If the file names none.
        InvalidInputError
            If one of them is to be certified.
        """
        made = self._calibrating(self._calibration(), model)
        with within("data", self.data):
            certified = self.data.task(model).items
        _require_others(made.items, certified)
        if made.items.class_names is None:  # they are of one model, and called the same
            made.items = replace(made.items, class_names=certified.class_names)
        self._require_classes(made)
        return made

    def _calibrating(self, section: DataSection, model: Model) -> ArrayTask:
        with within("calibration", section):
            return section.task(model)

    def calibration_items(self) -> ItemSet:
        """Load arrays that may be looked at, without a model.

        Raises
        ------
        ConfigurationError
            If the file names none, or what it certifies are no arrays.
        InvalidInputError
            If one of them is to be certified.
        """
        calibration = self._calibration()
        if not isinstance(calibration, ItemsSection) or not isinstance(self.data, ItemsSection):
            raise ConfigurationError("data.kind: locality is measured for arrays, such as pictures, alone.")
        items = calibration.build()
        _require_others(items, self.data.build())
        return items

    def _require_classes(self, task: ArrayTask) -> None:
        """Refuse targets of classes that there are not, before anything is predicted."""
        _, outputs = task.known()[0]
        with within("certificate", self.certificate):
            require_classes(make_targets(self.certificate.targets), outputs.class_names)

    def _calibration(self) -> DataSection:
        if self.calibration is None:
            raise ConfigurationError(
                "calibration: this section is missing. Name items that are not certified, as in [data]."
            )
        return self.calibration


def _require_others(looked_at: ItemSet, certified: ItemSet) -> None:
    """Refuse to certify what noise was, or may be, chosen by: see `localsmooth.locality.require_unseen`."""
    seen = {item_digest(item.image) for item in looked_at}
    for item in certified:
        if item_digest(item.image) in seen:
            raise InvalidInputError(
                "calibration",
                f'"{item.name}" is among its items, which plan, tune and locality look at, and is to be certified',
                "Name other items there, or certify others",
            )

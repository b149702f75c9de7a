"""Collective certificates from receptive fields under isotropic noise (Schuchardt et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from localsmooth.baselines.isotropic import item_result, require_isotropic, require_one_ball
from localsmooth.baselines.shared_budget import Attack, BudgetSets, most_attacked
from localsmooth.baselines.sparse_smooth import frontier_in_ball, needed_by_size
from localsmooth.certificates import ABSTAIN, certified_radius
from localsmooth.collective import Constraints
from localsmooth.errors import InvalidInputError
from localsmooth.layout import Layout, SeenAtoms, atoms_of, window_fields
from localsmooth.noise import Bernoulli, BinaryNoise, Gaussian, Noise, SparseFlips, Uniform
from localsmooth.results import CertifiedCurve, ItemResult
from localsmooth.tasks import default_certificate
from localsmooth.tasks.arrays import ItemMethod, SampledItem, Settings, counted_outputs

__all__ = ["ReceptiveFields"]


@dataclass(frozen=True, eq=False)
class ReceptiveFields(ItemMethod):
    """Every output is certified under the same isotropic noise, and perturbations outside its field do not count.

    Flips of bits have base certificates that are sets in the space of (additions, deletions), the exact ones of
    SparseSmooth; Gaussian and uniform noise have one number per output. The collective bound is a linear program over
    one shared perturbation.

    Parameters
    ----------
    receptive_field
        Largest distance, in input elements along any axis, at which an input can influence an output of the model.
    fields
        Whether each input can influence each output, both in flat order, instead of a distance.
    horizon
        As in `SparseSmooth`.

    Raises
    ------
    InvalidInputError
        Unless exactly one of `receptive_field` and `fields` is given.
    """

    receptive_field: int | None = None
    fields: Bool[np.ndarray, "outputs inputs"] | None = None
    horizon: int = 512
    name = "receptive-fields"

    def __post_init__(self) -> None:
        if (self.receptive_field is None) == (self.fields is None):
            raise InvalidInputError(
                "receptive_field", "both or neither of a distance and a mask are given", "Pass one of them"
            )
        if self.receptive_field is not None and self.receptive_field < 0:
            raise InvalidInputError("receptive_field", f"got {self.receptive_field}", "Pass 0 or more input elements")
        if self.horizon < 1:
            raise InvalidInputError("horizon", f"got {self.horizon}", "Pass at least 1")

    def require(self, layout: Layout, noise: Noise) -> None:
        """Refuse anything but isotropic noise, and fields that do not fit the layout."""
        require_isotropic(self.name, layout, noise, (Gaussian, Uniform, Bernoulli, SparseFlips))
        self.atoms(layout)

    def bound_names(self, settings: Settings) -> tuple[str, ...]:
        """Each output on its own, and the linear program of the paper."""
        del settings
        return ("naive", "lp")

    def atoms(self, layout: Layout) -> SeenAtoms:
        """Fields of view for the items of a layout.

        Raises
        ------
        InvalidInputError
            If the mask has not one row for each output, or the fields do not fit the layout.
        """
        if self.receptive_field is None:
            assert self.fields is not None
            fields = self.fields
            if fields.shape[0] != layout.outputs.labels.size:
                raise InvalidInputError(
                    "fields", f"{fields.shape[0]} rows", f"Pass one for each of {layout.outputs.labels.size} outputs"
                )
        else:
            fields = window_fields(layout.inputs.shape, layout.outputs.shape, self.receptive_field)
        return atoms_of(fields, layout.inputs)

    def certify(self, item: SampledItem, noise: Noise, settings: Settings) -> ItemResult:
        """Certify one item; see `ItemMethod.certify`."""
        atoms = self.atoms(item.layout)
        level = item.layout.levels[:1, :1]
        spread = np.broadcast_to(level, (item.layout.outputs.count, atoms.inputs.count, *level.shape[2:]))
        fine = Layout(item.layout.outputs, atoms.inputs, np.array(spread))
        threat = settings.threat.threat(settings.budgets, item.image, fine, noise)
        constraints = require_one_ball(self.name, threat, len(noise.kinds) * atoms.inputs.count)
        # Every output has a field of its own, so that no two are asked the same.
        bounds = item.votes.bounds(settings.sharing, settings.alpha, None)
        lower = bounds.lower
        sets, radius = (
            self._flip_sets(lower, noise, item.layout, atoms, constraints)
            if isinstance(noise, BinaryNoise)
            else _ball_sets(lower, noise, item.layout, atoms)
        )
        prediction = np.where(radius > 0, item.votes.candidate, ABSTAIN).astype(np.int64)
        counted = counted_outputs(item, prediction, settings.targets)
        curves: dict[tuple[str, str], CertifiedCurve] = {}
        for target, stakes in counted.items():
            attacks = most_attacked(sets, constraints, stakes.qualify)
            curves |= _curves(target, attacks, int(stakes.qualify.sum()), bounds.discount, atoms, item.layout)
        return item_result(
            item, prediction=prediction, lower=lower, eta=radius, radius=radius, curves=curves, counted=counted
        )

    def _flip_sets(
        self,
        lower: Float[np.ndarray, "outputs"],
        noise: BinaryNoise,
        layout: Layout,
        atoms: SeenAtoms,
        constraints: Constraints,
    ) -> tuple[BudgetSets, Float[np.ndarray, "outputs"]]:
        """Corners of the exact sets, and the first number of flips that is not shown to be tolerated."""
        kinds = len(noise.kinds)
        frontier = frontier_in_ball(noise, layout, lower, constraints, self.horizon)
        radius = (lower[:, None] > needed_by_size(frontier, constraints)[None]).sum(axis=1).astype(np.float64)
        known: dict[float, Float[np.ndarray, "corners kinds"]] = {}
        owner: list[np.ndarray] = []
        corner: list[np.ndarray] = [np.zeros((0, kinds))]
        for output in np.flatnonzero(radius > 0).tolist():
            q = float(lower[output])
            if q not in known:
                known[q] = frontier.corners(q)[:, :kinds].astype(np.float64)
            owner.append(np.full(len(known[q]), output, dtype=np.int64))
            corner.append(known[q])
        owners: Int[np.ndarray, "corners"] = np.concatenate([np.zeros(0, dtype=np.int64), *owner])
        return BudgetSets(atoms.seen, atoms.field, owners, np.concatenate(corner)), radius

    def assumptions(self, settings: Settings) -> tuple[str, ...]:
        """Say what the fields rest on."""
        where = (
            f"inputs up to {self.receptive_field} elements away"
            if self.fields is None
            else "the inputs that a given mask allows it"
        )
        return (
            "Baseline of Schuchardt et al. 2021: isotropic noise, base certificates as sets of tolerated budgets, a "
            f"linear program over one shared perturbation; bounds joined over all outputs by "
            f"{settings.simultaneous.name}.",
            f"The certificate is true only if each output of the model sees nothing but {where}; this was not checked.",
        )


def _ball_sets(
    lower: Float[np.ndarray, "outputs"], noise: Noise, layout: Layout, atoms: SeenAtoms
) -> tuple[BudgetSets, Float[np.ndarray, "outputs"]]:
    """One corner η/W per output, rounded down, and the radius that goes with it."""
    level, nowhere = layout.levels[:1, :1], np.zeros(lower.size, dtype=np.int64)
    weights, eta = default_certificate(noise).certificates(noise, level, lower, nowhere)
    radius = certified_radius(weights, eta, nowhere, noise.norm)
    alive = np.flatnonzero(eta > 0)
    corner = np.nextafter(eta[alive] / float(weights[0, 0]), 0.0)
    return BudgetSets(atoms.seen, atoms.field, alive, corner[:, None]), radius


def _curves(
    target: str, attacks: list[Attack], total: int, discount: int, atoms: SeenAtoms, layout: Layout
) -> dict[tuple[str, str], CertifiedCurve]:
    """Certified counts of one target under both bounds."""
    spent = np.zeros((len(attacks), layout.inputs.count))
    for place, attack in enumerate(attacks):
        np.add.at(spent[place], atoms.group, attack.spending.sum(axis=0))
    unknown = np.full(len(attacks), np.nan)
    made: dict[tuple[str, str], CertifiedCurve] = {}
    for name, attacked in (
        ("naive", np.array([float(attack.alone) for attack in attacks])),
        ("lp", np.array([attack.together for attack in attacks])),
    ):
        # The difference is rounded to at most the next whole number, so that its ceiling is safe.
        lower = np.maximum(total - discount - attacked, 0.0)
        made[target, name] = CertifiedCurve(np.ceil(lower).astype(np.int64), lower, unknown, spent)
    return made

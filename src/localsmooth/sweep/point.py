"""One configuration of a sweep, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from localsmooth.config import AnyFile, CentreSmoothingSection

__all__ = ["SweepPoint"]


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One configuration of a sweep.

    Parameters
    ----------
    method
        Name of its method.
    label
        What distinguishes it from the method's other points.
    configuration
        The whole configuration, validated.
    key
        Hash of the configuration's content and of the files that it names: the name of its result.
    run_key
        The same without what is only proven from the samples: the name of its run directory. Points that differ in
        their certificate alone share their samples.
    """

    method: str
    label: str
    configuration: AnyFile
    key: str
    run_key: str

    @property
    def samples_per_output(self) -> int:
        """Noisy samples that each output is certified from, at most."""
        sampling = self.configuration.sampling
        # Centre smoothing checks the ball that it has chosen with as many samples as it chose it with.
        choices = 2 if isinstance(self._baseline, CentreSmoothingSection) else 1
        assert sampling.n_candidate is not None, "a sweep does not take passes"
        assert sampling.n_bound is not None
        return choices * sampling.n_candidate + sampling.n_bound

    @property
    def total_samples(self) -> int:
        """Model calls for one item, at most: the samples of all cells, or clusters."""
        return self.samples_per_output * self.configuration.groups

    @property
    def bounds(self) -> list[str] | None:
        """Collective bounds that it is certified with; None for a baseline, which has one of its own."""
        return None if self._baseline is not None else list(self.configuration.certificate.bounds)

    @property
    def _baseline(self) -> object:
        return self.configuration.certificate.baseline

"""What sampling took: time, memory and, where the machine tells, energy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localsmooth.runs import ChunkRecord

__all__ = ["EnergyMeter", "SamplingSummary", "UsageMeter"]

_COUNTERS = Path("/sys/class/powercap")
_MEBI = 1 << 20


@dataclass(frozen=True)
class SamplingSummary:
    """What a run of the engine did and took, without what earlier runs had stored.

    Parameters
    ----------
    samples
        Samples drawn and stored.
    seconds
        Time that it took, from the first chunk on.
    devices
        Names of the devices that drew them.
    peak_memory
        Largest memory of one process that drew chunks, in bytes; None if not known.
    peak_device_memory
        Largest memory that torch used on one GPU, in bytes; None without GPUs.
    energy
        Joules that this machine's processors took meanwhile, other programs included; None if not known.
    """

    samples: int
    seconds: float
    devices: tuple[str, ...]
    peak_memory: int | None
    peak_device_memory: int | None
    energy: float | None

    @property
    def rate(self) -> float:
        """Samples (noisy images) per second."""
        return self.samples / max(self.seconds, 1e-9)

    def __str__(self) -> str:
        """One line for a user."""
        parts = [f"{self.samples:,} samples in {self.seconds:,.1f} s ({self.rate:,.1f} samples/s)"]
        parts.append("on " + (", ".join(self.devices) or "an unknown device"))
        if self.peak_memory is not None:
            parts.append(f"peak memory {self.peak_memory / _MEBI:,.0f} MiB a process")
        if self.peak_device_memory is not None:
            parts.append(f"{self.peak_device_memory / _MEBI:,.0f} MiB a GPU")
        parts.append(
            "energy not known" if self.energy is None else f"{self.energy:,.0f} J of this machine's processors"
        )
        return ", ".join(parts)


class EnergyMeter:
    """Reads the energy counters of the processor packages, where the system lets us (Intel and AMD on Linux).

    Parameters
    ----------
    folder
        Where the counters are.
    """

    def __init__(self, folder: Path = _COUNTERS) -> None:
        self._packages = sorted(path for path in folder.glob("intel-rapl:*") if path.name.count(":") == 1)
        self._start = [self._read(path) for path in self._packages]

    def joules(self) -> float | None:
        """Energy since the meter was made; None if a counter cannot be read. Counters may wrap around once."""
        total = 0.0
        for path, start in zip(self._packages, self._start, strict=True):
            end, wrap = self._read(path), self._read(path, "max_energy_range_uj")
            if start is None or end is None or (end < start and wrap is None):
                return None
            total += (end - start if end >= start else end - start + (wrap or 0)) / 1e6
        return total if self._packages else None

    @staticmethod
    def _read(path: Path, name: str = "energy_uj") -> int | None:
        try:
            return int((path / name).read_text())
        except (OSError, ValueError):
            return None


class UsageMeter:
    """Adds up what the chunks of a run took.

    Parameters
    ----------
    local
        Whether chunks are drawn on this machine, so that its energy counters mean something.
    clock
        Seconds, monotonic.
    """

    def __init__(self, *, local: bool = True, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._start = clock()
        self._energy = EnergyMeter() if local else None
        self._devices: dict[str, None] = {}
        self._memory: int | None = None
        self._device_memory: int | None = None

    def note(self, record: ChunkRecord) -> None:
        """Hear of a drawn chunk."""
        provenance = record.provenance
        self._devices[f"{provenance.get('device_name', '')} ({provenance.get('device', 'cpu')})".strip()] = None
        self._memory = _larger(self._memory, provenance.get("peak_memory"))
        self._device_memory = _larger(self._device_memory, provenance.get("peak_device_memory"))

    def summary(self, samples: int) -> SamplingSummary:
        """What it took until now to store so many samples."""
        return SamplingSummary(
            samples,
            max(0.0, self._clock() - self._start),
            tuple(self._devices),
            self._memory,
            self._device_memory,
            None if self._energy is None else self._energy.joules(),
        )


def _larger(known: int | None, found: object) -> int | None:
    if not isinstance(found, int):
        return known
    return found if known is None else max(known, found)

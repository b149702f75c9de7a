"""Many configurations at once: run what is missing, then compare methods over all their settings."""

from localsmooth.sweep.execute import Here, Job, Processes, Runner, SweepExecutor, missing_jobs, run_sweep
from localsmooth.sweep.expansion import Sweep, expand, load_sweep
from localsmooth.sweep.outcome import Outcome, SweepFolder, operating_point, read_outcomes
from localsmooth.sweep.point import SweepPoint
from localsmooth.sweep.report import sweep_page, write_sweep_report
from localsmooth.sweep.section import ComparisonSection, MethodSection, SweepSection

__all__ = [
    "ComparisonSection",
    "Here",
    "Job",
    "MethodSection",
    "Outcome",
    "Processes",
    "Runner",
    "Sweep",
    "SweepExecutor",
    "SweepFolder",
    "SweepPoint",
    "SweepSection",
    "expand",
    "load_sweep",
    "missing_jobs",
    "operating_point",
    "read_outcomes",
    "run_sweep",
    "sweep_page",
    "write_sweep_report",
]

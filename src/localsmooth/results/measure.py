"""What budgets are measured in, in words."""

from __future__ import annotations

from localsmooth.results.run import RunInfo

__all__ = ["budget_measure", "budget_units"]


def budget_measure(run: RunInfo) -> str:
    """Say what ε measures of a perturbation; empty where it counts things, such as bits.

    Parameters
    ----------
    run
        Of the result: its threat says whether ε is about the whole perturbation or about each position of it.
    """
    norm = f"{run.norm} norm"
    if run.threat.startswith(f"perturbation of {norm} at most ε"):
        return norm
    return f"{norm} of each position" if " moves " in run.threat and norm in run.threat else ""


def budget_units(run: RunInfo) -> str:
    """What ε measures and its units, such as "l2 norm, grey levels", or "bits"."""
    return ", ".join(filter(None, (budget_measure(run), run.units)))
